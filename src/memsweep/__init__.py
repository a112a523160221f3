"""memsweep: which of TRL's memory-saving techniques are worth combining, measured.

Importing this imports nothing else: `memsweep.trial.template` is started once per process.
"""

__version__ = "0.1.0"

"""A measured trial as a folder that trains without memsweep: TRL's command or a script, data, model, pins."""

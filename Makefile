# `make test` alone sets up a fresh machine and runs everything; a second run reuses what is there.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: install quickstart test cluster-test lint format smoke docs clean english-parser multilingual-parser bench

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# The whole method on the sample: SAMPLE=de or tr.
SAMPLE ?= de
quickstart: install
	$(BIN)/subdp quickstart --language $(SAMPLE) --output build/quickstart-$(SAMPLE)

test: install lint
	$(BIN)/python -m pytest

# The pipeline on a Ray cluster of two nodes on this machine, and what becomes of it when parts are killed: some minutes.
cluster-test: install
	$(BIN)/python -m pytest -m 'cluster or not cluster' tests/support/test_ray_cluster.py tests/support/test_ray_engine.py \
	  tests/pipeline/test_run_on_ray.py

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The wheel and the source distribution, each installed in a fresh environment and tried there.
smoke: install
	rm -rf dist
	$(BIN)/python -m build
	for package in dist/*; do \
	  $(PYTHON) -m venv --clear build/smoke-env && \
	  build/smoke-env/bin/python -m pip install --quiet $$package && \
	  build/smoke-env/bin/python tests/smoke.py || exit 1; \
	done

# The documentation as a site, in build/docs. What is unknown or broken in it is an error.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The English parser that ships with the package: trees first, then UPOS on top of them, which leaves the trees as they are.
# UD is a folder that holds UD 2.2's UD_English-EWT. The multilingual parser (below) is made from it, and must be made again.
EWT = $(UD)/UD_English-EWT/en_ewt-ud
english-parser: install
	rm -rf build/english-trees build/multilingual src/subdp/network/models/en
	$(BIN)/subdp train --treebank $(EWT)-train.conllu --dev $(EWT)-dev.conllu --predict none --seed 1 --half \
	  --output build/english-trees
	$(BIN)/subdp train --parser build/english-trees --predict upos --treebank $(EWT)-train.conllu \
	  --dev $(EWT)-dev.conllu --test $(EWT)-test.conllu --train.epochs 6 \
	  --title 'English dependency parser (UD English EWT 2.2)' --licence 'CC BY-SA 4.0, as the treebank' \
	  --seed 1 --half --output src/subdp/network/models/en

# The multilingual parser that ships with the package, from which adaptation starts. NTREX is a folder as `subdp data ntrex`
# makes it, with the languages that `python tools/multilingual.py --languages` prints.
multilingual-parser: install
	$(BIN)/python -m pip install --quiet --editable '.[zh,ja,th,vi]'
	$(BIN)/python tools/multilingual.py --ntrex $(NTREX) --treebank $(EWT)-train.conllu \
	  --output src/subdp/network/models/multi

# Our speed beside that of others: benchmarks/RESULTS.md. DATA is a folder with UD 2.2, NTREX and Tatoeba (benchmarks/suite.py);
# BENCH has other options, as BENCH='--only decode startup' or BENCH=--try.
BENCH_VENV ?= build/bench-env
DATA ?= data
bench: $(BENCH_VENV)/.installed
	$(BENCH_VENV)/bin/python benchmarks/suite.py --data $(DATA) $(BENCH)

$(BENCH_VENV)/.installed: pyproject.toml benchmarks/peers.txt
	test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH_VENV)/bin/python -m pip install --quiet --editable . --requirement benchmarks/peers.txt
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache

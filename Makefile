# Short names for tools/tasks.py, which does the work and runs without make too:
#   python tools/tasks.py test
# The demonstration without its page: make demo SERVE=0
# Another Python: make test PYTHON=python3.12. Further arguments: make lab ARGS="quality".

PYTHON ?= python3
TASKS = $(PYTHON) tools/tasks.py

.DEFAULT_GOAL := help
.PHONY: help setup demo docs lint check test test-milvus test-ray test-hub test-versions lab paper

help:
	@$(TASKS) --help

setup demo docs lint check test test-milvus test-ray test-hub test-versions lab paper:
	@$(TASKS) $@ $(ARGS)

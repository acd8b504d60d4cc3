.PHONY: docs check-docs

docs: # write every generated page, table and data file
	python -m tests.generate

check-docs: # exit with 1 if one of them is out of date
	python -m tests.generate --check

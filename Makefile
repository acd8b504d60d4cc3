.PHONY: docs check-docs one-file

docs: # write every generated page, table and data file
	python -m tests.generate

check-docs: # exit with 1 if one of them is out of date
	python -m tests.generate --check

one-file: # build dist/adapter, the program and its Python in one file, and try it
	python -m build --wheel --outdir dist
	.ci/one_file/build "$$(ls -t dist/*.whl | head -n 1)" dist/adapter
	.ci/one_file/try dist/adapter

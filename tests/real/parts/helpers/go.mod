module reeve.dev/tests/real/parts/helpers

go 1.26.0

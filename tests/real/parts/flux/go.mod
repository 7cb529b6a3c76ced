module reeve.dev/tests/real/parts/flux

go 1.26.0

replace github.com/fluxcd/helm-controller/api => github.com/fluxcd/helm-controller/api v1.6.3

require github.com/fluxcd/helm-controller v1.6.3

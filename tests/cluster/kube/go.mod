// The modules of each Kubernetes are in its own file, 1.34.mod: go build -modfile=1.34.mod
module tierbench.io/tests/cluster/kube

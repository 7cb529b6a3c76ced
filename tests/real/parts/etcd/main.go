// The etcd server, built from its published module for the tests against real
// parts: the module ships no main package that builds outside its repository.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}

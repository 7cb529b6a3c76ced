// Does with a Kubernetes API server what controllers do, by way of client-go and
// controller-runtime, and prints what came of each check:
//
//	clients KUBECONFIG NAMESPACE
//	clients KUBECONFIG NAMESPACE follow
//	clients KUBECONFIG NAMESPACE caches
//
// With `follow` it checks nothing, and prints what an informer sees until its standard
// input ends; with `caches` it compares what informers have with lists, each time that it
// is asked to by a line. The namespace has to exist. Whether informers list or stream in the beginning
// is decided by the environment, as for any client (KUBE_FEATURE_WatchListClient).
// The exit code is 1 when a check failed.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	apiextensions "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// No check takes nearly as long on an idle machine.
const patience = 60 * time.Second

// A world is what the checks share.
type world struct {
	config    *rest.Config
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	namespace string
}

type check struct {
	name string
	run  func(context.Context, *world) error
}

var checks = []check{
	{"typed objects are created, changed and deleted, sent as protobuf", typedObjects},
	{"errors are told apart", errorKinds},
	{"lists come in pages", pages},
	{"discovery, mapping and OpenAPI agree", discoveryAgrees},
	{"reviews and tokens are answered", reviews},
	{"a definition is served", definition},
	{"custom objects are applied, patched and scaled", customObjects},
	{"a shared informer sees everything in order", sharedInformer},
	{"a dynamic informer sees custom objects", dynamicInformer},
	{"a metadata informer sees metadata", metadataInformer},
	{"an informer goes on after its connections were cut", cutConnections},
	{"an informer goes on after its version has expired", expiredVersion},
	{"a manager's cache answers reads, and sees writes", managerCache},
	{"a lease is taken, and given up", leases},
}

func main() {
	others := map[string]func(*world) error{"follow": tell, "caches": compareCaches}
	var other func(*world) error
	if len(os.Args) == 4 {
		other = others[os.Args[3]]
	}
	if len(os.Args) != 3 && other == nil {
		fmt.Fprintln(os.Stderr, "usage: clients KUBECONFIG NAMESPACE [follow|caches]")
		os.Exit(2)
	}
	world, err := newWorld(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if other != nil {
		if err := other(world); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	failed := 0
	for _, check := range checks {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if err := check.run(ctx, world); err != nil {
			failed++
			fmt.Printf("FAILED %s: %v\n", check.name, err)
		} else {
			fmt.Printf("ok %s\n", check.name)
		}
		cancel()
	}
	if failed > 0 {
		os.Exit(1)
	}
}

func newWorld(kubeconfig, namespace string) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// The defaults are made to be kind to a shared server.
	config.QPS, config.Burst = 1000, 2000
	// As the control plane's own components speak of built-in kinds.
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return nil, err
	}
	dynamic, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &world{config, typed, dynamic, namespace}, nil
}

var (
	widgets     = schema.GroupVersionResource{Group: "clients.example.com", Version: "v1", Resource: "widgets"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// A widget is an object of the kind that `definition` defines.
func widget(name string, size int64) *apiextensions.Unstructured {
	return &apiextensions.Unstructured{Object: map[string]any{
		"apiVersion": "clients.example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"size": size},
	}}
}

// eventually looks again until `look` succeeds.
func eventually(ctx context.Context, look func() error) error {
	for {
		err := look()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

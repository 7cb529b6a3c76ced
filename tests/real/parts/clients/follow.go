package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/informers"
)

// tell says what an informer of config maps whose names begin with `seen-` sees, one
// word a line, until nobody holds our standard input open any more.
func tell(w *world) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(w.typed, 0, informers.WithNamespace(w.namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	journal := &journal{prefix: "seen-", tell: func(word string) { fmt.Println(word) }}
	if _, err := informer.AddEventHandler(journal); err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// How often handlers are told of everything again.
const resync = 2 * time.Second

// A tally is what passed between informers and the server.
type tally struct {
	through http.RoundTripper
	// Lists, watches, and watches that begin with what is there.
	lists, watches, streams atomic.Int64
	// Watches that the server ended in good order, bookmarks, and versions that it has
	// forgotten.
	ended, bookmarks, gone atomic.Int64
	// Objects that handlers were told of again.
	resyncs atomic.Int64
}

func (t *tally) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	answer, err := t.through.RoundTrip(request)
	if query.Get("watch") == "" {
		t.lists.Add(1)
		return answer, err
	}
	t.watches.Add(1)
	if query.Get("sendInitialEvents") == "true" {
		t.streams.Add(1)
	}
	if err != nil {
		return answer, err
	}
	if answer.StatusCode == http.StatusGone {
		t.gone.Add(1)
	}
	if answer.StatusCode == http.StatusOK {
		answer.Body = &followed{ReadCloser: answer.Body, tally: t}
	}
	return answer, nil
}

// A followed body is a watch whose events are counted while they are read.
type followed struct {
	io.ReadCloser
	tally *tally
	line  []byte
	once  sync.Once
}

func (f *followed) Read(into []byte) (int, error) {
	read, err := f.ReadCloser.Read(into)
	for rest := into[:read]; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			f.line = append(f.line, rest...)
			break
		}
		f.count(append(f.line, rest[:end]...))
		f.line, rest = f.line[:0], rest[end+1:]
	}
	if errors.Is(err, io.EOF) {
		f.once.Do(func() { f.tally.ended.Add(1) })
	}
	return read, err
}

func (f *followed) count(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)):
		f.tally.bookmarks.Add(1)
	case bytes.Contains(line, []byte(`"type":"ERROR"`)) && bytes.Contains(line, []byte(`"code":410`)):
		f.tally.gone.Add(1)
	}
}

// A followedKind is an informer and what the server says at the same time.
type followedKind struct {
	name     string
	informer cache.SharedIndexInformer
	list     func(context.Context) ([]any, error)
}

// differs says what the informer has otherwise than a list of the server, and how much
// there is. A kind that is not served has nothing to compare, and -1 objects.
func (k *followedKind) differs(ctx context.Context) (int, error) {
	listed, err := k.list(ctx)
	if apierrors.IsNotFound(err) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	there, err := byName(listed)
	if err != nil {
		return 0, err
	}
	known, err := byName(k.informer.GetStore().List())
	if err != nil {
		return 0, err
	}
	for name, object := range there {
		if known[name] != object {
			return 0, fmt.Errorf("%s %s is %s, and the informer has %q", k.name, name, object, known[name])
		}
	}
	for name := range known {
		if there[name] == "" {
			return 0, fmt.Errorf("%s %s is gone, and the informer has it", k.name, name)
		}
	}
	return len(there), nil
}

func byName(objects []any) (map[string]string, error) {
	named := map[string]string{}
	for _, object := range objects {
		about, ok := object.(meta.Object)
		if !ok {
			return nil, fmt.Errorf("%T is no object", object)
		}
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		named[about.GetNamespace()+"/"+about.GetName()] = string(text)
	}
	return named, nil
}

// compareCaches runs informers of config maps, of definitions and of a custom kind, which
// may come and go. For each line on the standard input it waits until each of them has
// what a list has, and prints how much that is and what has passed so far. Nobody may write
// meanwhile.
func compareCaches(w *world) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tally := &tally{}
	config := rest.CopyConfig(w.config)
	// Events are told apart by their text.
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	config.Wrap(func(through http.RoundTripper) http.RoundTripper {
		tally.through = through
		return tally
	})
	kinds, err := followedKinds(w, config)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		_, err := kind.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(before, after any) {
				if before.(meta.Object).GetResourceVersion() == after.(meta.Object).GetResourceVersion() {
					tally.resyncs.Add(1)
				}
			},
		})
		if err != nil {
			return err
		}
		go kind.informer.RunWithContext(ctx)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		limited, done := context.WithTimeout(ctx, patience)
		said := map[string]int64{}
		for _, kind := range kinds {
			err := eventually(limited, func() error {
				count, err := kind.differs(limited)
				said[kind.name] = int64(count)
				return err
			})
			if err != nil {
				done()
				return err
			}
		}
		done()
		said["lists"], said["watches"], said["streams"] = tally.lists.Load(), tally.watches.Load(), tally.streams.Load()
		said["ended"], said["bookmarks"], said["gone"] = tally.ended.Load(), tally.bookmarks.Load(), tally.gone.Load()
		said["resyncs"] = tally.resyncs.Load()
		line, err := json.Marshal(said)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return lines.Err()
}

func followedKinds(w *world, config *rest.Config) ([]*followedKind, error) {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	maps := informers.NewSharedInformerFactoryWithOptions(typed, resync, informers.WithNamespace(w.namespace))
	objects := dynamicinformer.NewDynamicSharedInformerFactory(custom, resync)
	// What is compared with is asked for by others, so that it is not counted.
	all := meta.ListOptions{}
	inNamespace := func(ctx context.Context) ([]any, error) {
		list, err := w.typed.CoreV1().ConfigMaps(w.namespace).List(ctx, all)
		if err != nil {
			return nil, err
		}
		return pointers(list.Items), nil
	}
	kinds := []*followedKind{{"configmaps", maps.Core().V1().ConfigMaps().Informer(), inNamespace}}
	for _, resource := range []string{widgets.Resource, definitions.Resource} {
		about := widgets
		if resource == definitions.Resource {
			about = definitions
		}
		list := func(ctx context.Context) ([]any, error) {
			list, err := w.dynamic.Resource(about).List(ctx, all)
			if err != nil {
				return nil, err
			}
			return pointers(list.Items), nil
		}
		kinds = append(kinds, &followedKind{strings.ToLower(resource), objects.ForResource(about).Informer(), list})
	}
	return kinds, nil
}

func pointers[T core.ConfigMap | unstructured.Unstructured](items []T) []any {
	all := make([]any, len(items))
	for index := range items {
		all[index] = &items[index]
	}
	return all
}

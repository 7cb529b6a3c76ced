package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// A journal is what an informer told, one word an event.
type journal struct {
	sync.Mutex
	words []string
	// The words of objects whose names do not begin so are left out.
	prefix string
	// Who is told each word at once, if anybody.
	tell func(string)
}

func (j *journal) add(kind string, object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	named, ok := object.(meta.Object)
	if !ok || !strings.HasPrefix(named.GetName(), j.prefix) {
		return
	}
	j.Lock()
	defer j.Unlock()
	word := kind + strings.TrimPrefix(named.GetName(), j.prefix) + named.GetLabels()["step"]
	j.words = append(j.words, word)
	if j.tell != nil {
		j.tell(word)
	}
}

func (j *journal) OnAdd(object any, _ bool) { j.add("+", object) }
func (j *journal) OnDelete(object any)      { j.add("-", object) }
func (j *journal) OnUpdate(before, after any) {
	// Told again without a change, as after a list.
	if before.(meta.Object).GetResourceVersion() != after.(meta.Object).GetResourceVersion() {
		j.add("~", after)
	}
}

// reaches waits until the journal is exactly that.
func (j *journal) reaches(ctx context.Context, expected string) error {
	return eventually(ctx, func() error {
		j.Lock()
		defer j.Unlock()
		if found := strings.Join(j.words, " "); found != expected {
			return fmt.Errorf("it saw %q, not %q", found, expected)
		}
		return nil
	})
}

// started runs an informer with a journal until the context ends.
func started(ctx context.Context, informer cache.SharedIndexInformer, prefix string) (*journal, error) {
	journal := &journal{prefix: prefix}
	if _, err := informer.AddEventHandler(journal); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, errors.New("it did not sync")
	}
	return journal, nil
}

// follow changes config maps and compares what an informer of them tells.
func follow(ctx context.Context, w *world, prefix string, informer cache.SharedIndexInformer, between func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	create := func(name string) error {
		_, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: prefix + name}}, meta.CreateOptions{})
		return err
	}
	step := func(name, step string) error {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"step":%q}}}`, step)
		_, err := maps.Patch(ctx, prefix+name, types.MergePatchType, []byte(patch), meta.PatchOptions{})
		return err
	}
	if err := errors.Join(create("a"), create("b")); err != nil {
		return err
	}
	journal, err := started(ctx, informer, prefix)
	if err != nil {
		return err
	}
	// The first two come in any order.
	err = eventually(ctx, func() error {
		journal.Lock()
		defer journal.Unlock()
		if len(journal.words) != 2 {
			return fmt.Errorf("it saw %v", journal.words)
		}
		journal.words = nil
		return nil
	})
	if err != nil {
		return err
	}
	err = errors.Join(step("a", "1"), step("a", "2"), create("c"), step("b", "1"),
		maps.Delete(ctx, prefix+"a", meta.DeleteOptions{}), create("a"))
	if err != nil {
		return err
	}
	expected := "~a1 ~a2 +c ~b1 -a2 +a"
	if err := journal.reaches(ctx, expected); err != nil {
		return err
	}
	if between != nil {
		if err := between(); err != nil {
			return err
		}
	}
	err = errors.Join(step("c", "3"), maps.Delete(ctx, prefix+"b", meta.DeleteOptions{}))
	if err != nil {
		return err
	}
	// After a list the two may come in any order.
	err = eventually(ctx, func() error {
		journal.Lock()
		defer journal.Unlock()
		found := strings.Join(journal.words, " ")
		if found != expected+" ~c3 -b1" && (between == nil || found != expected+" -b1 ~c3") {
			return fmt.Errorf("it saw %q at last", found)
		}
		return nil
	})
	if err != nil {
		return err
	}
	stored := 0
	for _, object := range informer.GetStore().List() {
		if strings.HasPrefix(object.(meta.Object).GetName(), prefix) {
			stored++
		}
	}
	if stored != 2 {
		return fmt.Errorf("its store has %d objects", stored)
	}
	return errors.Join(maps.Delete(ctx, prefix+"a", meta.DeleteOptions{}), maps.Delete(ctx, prefix+"c", meta.DeleteOptions{}))
}

func sharedInformer(ctx context.Context, w *world) error {
	factory := informers.NewSharedInformerFactoryWithOptions(w.typed, 0, informers.WithNamespace(w.namespace))
	return follow(ctx, w, "shared-", factory.Core().V1().ConfigMaps().Informer(), nil)
}

func metadataInformer(ctx context.Context, w *world) error {
	client, err := metadata.NewForConfig(w.config)
	if err != nil {
		return err
	}
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, w.namespace, nil)
	return follow(ctx, w, "metadata-", factory.ForResource(configMaps).Informer(), nil)
}

func dynamicInformer(ctx context.Context, w *world) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	objects := w.dynamic.Resource(widgets).Namespace(w.namespace)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(w.dynamic, 0, w.namespace, func(options *meta.ListOptions) {
		options.LabelSelector = "shown!=no"
	})
	journal, err := started(ctx, factory.ForResource(widgets).Informer(), "dynamic-")
	if err != nil {
		return err
	}
	if _, err := objects.Create(ctx, widget("dynamic-a", 1), meta.CreateOptions{}); err != nil {
		return err
	}
	// What the selector does not select any more is gone, and comes back.
	for _, shown := range []string{"yes", "no", "yes"} {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"shown":%q}}}`, shown)
		if _, err := objects.Patch(ctx, "dynamic-a", types.MergePatchType, []byte(patch), meta.PatchOptions{}); err != nil {
			return err
		}
	}
	if err := objects.Delete(ctx, "dynamic-a", meta.DeleteOptions{}); err != nil {
		return err
	}
	return journal.reaches(ctx, "+a ~a -a +a -a")
}

// A proxy passes connections on to the server until they are cut.
type proxy struct {
	sync.Mutex
	listener net.Listener
	target   string
	open     []net.Conn
	accepted int
}

func newProxy(target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	proxy := &proxy{listener: listener, target: target}
	go proxy.serve()
	return proxy, nil
}

func (p *proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			near.Close()
			continue
		}
		p.Lock()
		p.open = append(p.open, near, far)
		p.accepted++
		p.Unlock()
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			go func() {
				io.Copy(way[0], way[1])
				way[0].Close()
			}()
		}
	}
}

// cut closes every connection; the next ones are passed on again.
func (p *proxy) cut() int {
	p.Lock()
	defer p.Unlock()
	for _, connection := range p.open {
		connection.Close()
	}
	p.open = nil
	return p.accepted
}

func cutConnections(ctx context.Context, w *world) error {
	address, err := url.Parse(w.config.Host)
	if err != nil {
		return err
	}
	proxy, err := newProxy(address.Host)
	if err != nil {
		return err
	}
	defer proxy.listener.Close()
	config := rest.CopyConfig(w.config)
	config.Host = "https://" + proxy.listener.Addr().String()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(w.namespace))
	return follow(ctx, w, "cut-", factory.Core().V1().ConfigMaps().Informer(), func() error {
		before := proxy.cut()
		return eventually(ctx, func() error {
			proxy.Lock()
			defer proxy.Unlock()
			if proxy.accepted == before {
				return errors.New("it did not connect again")
			}
			return nil
		})
	})
}

// A stream is the body of an answer that can be ended as a server ends it.
type stream struct {
	*io.PipeReader
	writer *io.PipeWriter
	body   io.Closer
}

func passOn(body io.ReadCloser) *stream {
	reader, writer := io.Pipe()
	go func() {
		_, err := io.Copy(writer, body)
		writer.CloseWithError(err)
	}()
	return &stream{reader, writer, body}
}

func (s *stream) Close() error {
	return errors.Join(s.body.Close(), s.PipeReader.Close())
}

func (s *stream) end() {
	s.writer.Close()
	s.body.Close()
}

// A gone answers the next watches as a server does that has forgotten what was
// before.
type gone struct {
	sync.Mutex
	through http.RoundTripper
	streams []*stream
	left    int
}

const expiredBody = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}`

func (g *gone) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	// A watch that streams everything first forgets nothing.
	follows := query.Get("watch") != "" && query.Get("sendInitialEvents") == ""
	g.Lock()
	refuse := follows && g.left > 0
	if refuse {
		g.left--
	}
	g.Unlock()
	if refuse {
		return &http.Response{
			Status: "410 Gone", StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}},
			Body:   io.NopCloser(strings.NewReader(expiredBody)), Request: request,
		}, nil
	}
	answer, err := g.through.RoundTrip(request)
	if err == nil && query.Get("watch") != "" {
		passed := passOn(answer.Body)
		answer.Body = passed
		g.Lock()
		g.streams = append(g.streams, passed)
		g.Unlock()
	}
	return answer, err
}

func expiredVersion(ctx context.Context, w *world) error {
	config := rest.CopyConfig(w.config)
	var transport *gone
	config.Wrap(func(through http.RoundTripper) http.RoundTripper {
		transport = &gone{through: through}
		return transport
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(w.namespace))
	return follow(ctx, w, "expired-", factory.Core().V1().ConfigMaps().Informer(), func() error {
		transport.Lock()
		transport.left = 1
		for _, stream := range transport.streams {
			stream.end()
		}
		transport.streams = nil
		transport.Unlock()
		return eventually(ctx, func() error {
			transport.Lock()
			defer transport.Unlock()
			if transport.left > 0 || len(transport.streams) == 0 {
				return errors.New("it did not begin anew")
			}
			return nil
		})
	})
}

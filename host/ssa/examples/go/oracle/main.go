// Answers applies and updates with the Go library that a server uses.
//
// Reads one request a line from standard input and writes one answer a line.
// The first line is a map of schema names to the openAPIV3Schema of a custom
// resource, or null for one without a schema. With a folder of OpenAPI v3
// documents as argument, the name "built-in" stands for all kinds in them.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var kind = schema.GroupVersionKind{Group: "test", Version: "v1", Kind: "Thing"}

type request struct {
	Schema  string
	Op      string
	Manager string
	Force   bool
	Reset   []string
	// Live is null when the object is created.
	Live map[string]any
	// Zero is what an object of the kind has when nothing is set.
	Zero   map[string]any
	Object map[string]any
}

type answer struct {
	Object map[string]any `json:"object,omitempty"`
	Error  string         `json:"error,omitempty"`
	Causes any            `json:"causes,omitempty"`
}

// objects stands for the parts of a server that know kinds: there is one kind,
// in one version, without defaults. It holds what an object of the kind has
// when nothing is set.
type objects struct{ zero map[string]any }

func (objects) Convert(in, out, context any) error { return fmt.Errorf("not used") }
func (objects) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (objects) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
func (objects) Default(runtime.Object) {}
func (o objects) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := (&unstructured.Unstructured{Object: o.zero}).DeepCopy()
	object.SetGroupVersionKind(gvk)
	return object, nil
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	if !in.Scan() {
		log.Fatal("no schemas")
	}
	var schemas map[string]json.RawMessage
	if err := json.Unmarshal(in.Bytes(), &schemas); err != nil {
		log.Fatal(err)
	}
	converters := map[string]managedfields.TypeConverter{}
	for name, text := range schemas {
		converters[name] = converter(text)
	}
	if len(os.Args) > 1 {
		converters["built-in"] = builtIn(os.Args[1])
	}
	for in.Scan() {
		var r request
		object := &unstructured.Unstructured{}
		if err := unmarshal(in.Bytes(), &r); err != nil {
			log.Fatal(err)
		}
		object.Object = r.Object
		reply, err := json.Marshal(handle(r, converters[r.Schema], object))
		if err != nil {
			log.Fatal(err)
		}
		out.Write(append(reply, '\n'))
		if err := out.Flush(); err != nil {
			log.Fatal(err)
		}
	}
}

// unmarshal reads integers as integers, as a server does.
func unmarshal(text []byte, r *request) error {
	whole := &unstructured.Unstructured{}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, r); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	for name, into := range map[string]*map[string]any{"live": &r.Live, "object": &r.Object} {
		if raw := fields[name]; len(raw) > 0 && string(raw) != "null" {
			whole.Object = nil
			if err := whole.UnmarshalJSON(raw); err != nil {
				return err
			}
			*into = whole.Object
		}
	}
	return nil
}

func converter(text json.RawMessage) managedfields.TypeConverter {
	if string(text) == "null" {
		return managedfields.NewDeducedTypeConverter()
	}
	const meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	root, object := &spec.Schema{}, &spec.Schema{}
	if err := json.Unmarshal(text, root); err != nil {
		log.Fatal(err)
	}
	if err := json.Unmarshal([]byte(objectMeta), object); err != nil {
		log.Fatal(err)
	}
	root.SetProperty("apiVersion", *spec.StringProperty())
	root.SetProperty("kind", *spec.StringProperty())
	root.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + meta))
	root.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
		"group": kind.Group, "version": kind.Version, "kind": kind.Kind,
	}})
	types, err := managedfields.NewTypeConverter(map[string]*spec.Schema{"thing": root, meta: object}, false)
	if err != nil {
		log.Fatal(err)
	}
	return types
}

func builtIn(folder string) managedfields.TypeConverter {
	all := map[string]*spec.Schema{}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			log.Fatal(err)
		}
		var document struct {
			Components struct{ Schemas map[string]*spec.Schema }
		}
		if err := json.Unmarshal(text, &document); err != nil {
			log.Fatal(err)
		}
		for name, schema := range document.Components.Schemas {
			all[name] = schema
		}
	}
	types, err := managedfields.NewTypeConverter(all, false)
	if err != nil {
		log.Fatal(err)
	}
	return types
}

func handle(r request, types managedfields.TypeConverter, object *unstructured.Unstructured) answer {
	reset := fieldpath.NewSet()
	for _, field := range r.Reset {
		reset.Insert(fieldpath.MakePathOrDie(field))
	}
	kind := object.GroupVersionKind()
	kinds := objects{zero: r.Zero}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		types, kinds, kinds, kinds, kind, kind.GroupVersion(), "",
		map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(kind.GroupVersion().String()): fieldpath.NewExcludeSetFilter(reset)},
	)
	if err != nil {
		log.Fatal(err)
	}
	live, err := kinds.New(kind)
	if err != nil {
		log.Fatal(err)
	}
	if r.Live != nil {
		live = &unstructured.Unstructured{Object: r.Live}
	}
	var result runtime.Object
	switch r.Op {
	case "apply":
		result, err = manager.Apply(live, object, r.Manager, r.Force)
	case "update":
		result = manager.UpdateNoErrors(live, object, r.Manager)
	default:
		log.Fatalf("unknown op %q", r.Op)
	}
	if err != nil {
		reply := answer{Error: err.Error()}
		if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil {
			reply.Causes = status.Status().Details.Causes
		}
		return reply
	}
	return answer{Object: result.(*unstructured.Unstructured).Object}
}

const objectMeta = `{"type": "object", "properties": {
	"name": {"type": "string"}, "namespace": {"type": "string"}, "uid": {"type": "string"},
	"resourceVersion": {"type": "string"}, "generation": {"type": "integer"},
	"creationTimestamp": {"type": "string", "format": "date-time"},
	"labels": {"type": "object", "additionalProperties": {"type": "string"}},
	"annotations": {"type": "object", "additionalProperties": {"type": "string"}},
	"finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
	"managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"}
}}`

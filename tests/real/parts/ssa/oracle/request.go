package main

import (
	"encoding/json"
	"log"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type request struct {
	Kind        string
	Op          string
	Manager     string
	Subresource string
	Force       bool
	Reset       []string
	// Live is null when the object is created.
	Live map[string]any
	// Zero is what an object of the kind has when nothing is set.
	Zero   map[string]any
	Object map[string]any
}

type answer struct {
	Object map[string]any `json:"object,omitempty"`
	// Fields has fieldsV1 of each entry as text, in the order of managedFields.
	Fields []string `json:"fields,omitempty"`
	Error  string   `json:"error,omitempty"`
	Causes any      `json:"causes,omitempty"`
}

// read takes integers for integers, as a server does.
func (r *request) read(text []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, r); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	for name, into := range map[string]*map[string]any{"live": &r.Live, "object": &r.Object} {
		if raw := fields[name]; len(raw) > 0 && string(raw) != "null" {
			whole := &unstructured.Unstructured{}
			if err := whole.UnmarshalJSON(raw); err != nil {
				return err
			}
			*into = whole.Object
		}
	}
	return nil
}

func (r *request) answer(of kind) answer {
	object := &unstructured.Unstructured{Object: r.Object}
	gvk := object.GroupVersionKind()
	reset := fieldpath.NewSet()
	for _, field := range r.Reset {
		path := fieldpath.Path{}
		for _, name := range strings.Split(field, ".") {
			path = append(path, fieldpath.PathElement{FieldName: &name})
		}
		reset.Insert(path)
	}
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	for _, version := range append(of.versions, gvk.GroupVersion()) {
		filters[fieldpath.APIVersion(version.String())] = fieldpath.NewExcludeSetFilter(reset)
	}
	kinds := objects{zero: r.Zero}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		of.types, of.converter, kinds, kinds, gvk, gvk.GroupVersion(), r.Subresource, filters,
	)
	if err != nil {
		log.Fatal(err)
	}
	live, err := kinds.New(gvk)
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
	done := result.(*unstructured.Unstructured)
	return answer{Object: done.Object, Fields: fields(done)}
}

// fields writes each set as the library does, which orders its keys by their
// meaning. Reading an object orders them by their text.
func fields(object *unstructured.Unstructured) []string {
	var out []string
	for _, entry := range object.GetManagedFields() {
		set := &fieldpath.Set{}
		if err := set.FromJSON(strings.NewReader(string(entry.FieldsV1.GetRawBytes()))); err != nil {
			log.Fatal(err)
		}
		text, err := set.ToJSON()
		if err != nil {
			log.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

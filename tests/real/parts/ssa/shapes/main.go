// Prints what OpenAPI does not tell of built-in types: which fields an object
// always has, and which fields are dropped when they hold a zero value. Both
// follow from the Go structs in which a server keeps its objects.
//
// Prints one JSON object; a test makes the table of built-in types of it.
package main

import (
	"encoding/json"
	"log"
	"os"
	"reflect"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// shape describes the fields of one struct by their JSON names.
type shape struct {
	// Present are fields that are there even when nobody set them.
	Present map[string]json.RawMessage `json:"present,omitempty"`
	// Dropped are scalars that are left out when they are zero.
	Dropped []string `json:"dropped,omitempty"`
}

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme,
		authorization.AddToScheme, autoscaling.AddToScheme, autoscalingv1.AddToScheme,
		batch.AddToScheme, certificates.AddToScheme, coordination.AddToScheme,
		core.AddToScheme, discovery.AddToScheme, events.AddToScheme,
		flowcontrol.AddToScheme, networking.AddToScheme, node.AddToScheme,
		policy.AddToScheme, rbac.AddToScheme, resource.AddToScheme,
		scheduling.AddToScheme, storage.AddToScheme, apiextensions.AddToScheme,
		apiregistration.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			log.Fatal(err)
		}
	}
	shapes := map[string]shape{}
	for _, t := range scheme.AllKnownTypes() {
		visit(t, shapes)
	}
	if err := json.NewEncoder(os.Stdout).Encode(shapes); err != nil {
		log.Fatal(err)
	}
}

func visit(t reflect.Type, shapes map[string]shape) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	name := name(t)
	if _, done := shapes[name]; done {
		return
	}
	shapes[name] = shape{}
	out := shape{Present: map[string]json.RawMessage{}}
	zero, err := json.Marshal(reflect.New(t).Interface())
	if err != nil || json.Unmarshal(zero, &out.Present) != nil {
		// It has a form of its own, such as a time or a quantity.
		return
	}
	fields(t, &out, shapes)
	shapes[name] = out
}

func fields(t reflect.Type, out *shape, shapes map[string]shape) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if tag[0] == "-" || !field.IsExported() {
			continue
		}
		if field.Anonymous && tag[0] == "" {
			fields(field.Type, out, shapes)
			continue
		}
		visit(field.Type, shapes)
		switch field.Type.Kind() {
		case reflect.Bool, reflect.String, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
			if strings.Contains(field.Tag.Get("json"), ",omit") {
				out.Dropped = append(out.Dropped, tag[0])
			}
		}
	}
}

// name is the last part of the package, its version, and the type, which is
// how the table names types.
func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	if len(parts) > 1 {
		parts = parts[len(parts)-2:]
	}
	return strings.Join(append(parts, t.Name()), ".")
}

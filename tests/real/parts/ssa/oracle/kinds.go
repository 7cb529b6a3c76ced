package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// kind is what a server has of a kind of objects: its types, and what turns
// an object of one version into one of another.
type kind struct {
	types     managedfields.TypeConverter
	converter runtime.ObjectConvertor
	versions  []schema.GroupVersion
}

// custom is built as the server builds it from a definition.
func custom(text json.RawMessage) kind {
	definition := &apiextensions.CustomResourceDefinition{}
	definition.Name = "things.test"
	definition.Spec.Group = "test"
	definition.Spec.Scope = apiextensions.NamespaceScoped
	definition.Spec.Names = apiextensions.CustomResourceDefinitionNames{
		Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList",
	}
	definition.Spec.Conversion = &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter}
	untyped := string(text) == "null"
	if untyped {
		definition.Spec.Versions = []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}}
	} else if err := json.Unmarshal(text, &definition.Spec.Versions); err != nil {
		log.Fatal(err)
	}
	factory, err := conversion.NewCRConverterFactory(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	out := kind{types: managedfields.NewDeducedTypeConverter()}
	out.converter, _, err = factory.NewConverter(definition)
	if err != nil {
		log.Fatal(err)
	}
	specs := []*spec3.OpenAPI{}
	for _, version := range definition.Spec.Versions {
		out.versions = append(out.versions, schema.GroupVersion{Group: "test", Version: version.Name})
		if untyped {
			continue
		}
		one, err := builder.BuildOpenAPIV3(definition, version.Name, builder.Options{})
		if err != nil {
			log.Fatal(err)
		}
		specs = append(specs, one)
	}
	if untyped {
		return out
	}
	all, err := builder.MergeSpecsV3(specs...)
	if err != nil {
		log.Fatal(err)
	}
	out.types, err = managedfields.NewTypeConverter(all.Components.Schemas, false)
	if err != nil {
		log.Fatal(err)
	}
	return out
}

// builtIn is all kinds in a server's own documents, each in one version.
func builtIn(folder string) kind {
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
	return kind{types: types, converter: oneVersion{}}
}

// oneVersion stands for the conversions of built-in kinds, of which none is
// asked for.
type oneVersion struct{}

func (oneVersion) Convert(in, out, context any) error { return fmt.Errorf("not used") }
func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// objects makes objects of a kind as they are when nothing is set, and knows
// no defaults.
type objects struct{ zero map[string]any }

func (objects) Default(runtime.Object) {}
func (o objects) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := (&unstructured.Unstructured{Object: o.zero}).DeepCopy()
	if object.Object == nil {
		object.Object = map[string]any{}
	}
	object.SetGroupVersionKind(gvk)
	return object, nil
}

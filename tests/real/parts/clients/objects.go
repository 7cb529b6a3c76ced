package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

func typedObjects(ctx context.Context, w *world) error {
	deployments := w.typed.AppsV1().Deployments(w.namespace)
	replicas := int32(2)
	labels := map[string]string{"app": "typed"}
	made, err := deployments.Create(ctx, &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: "typed"},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas,
			Selector: &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{
				ObjectMeta: meta.ObjectMeta{Labels: labels},
				Spec:       core.PodSpec{Containers: []core.Container{{Name: "a", Image: "a:1", Env: []core.EnvVar{{Name: "A", Value: "1"}}}}},
			},
		},
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	if made.UID == "" || made.Generation != 1 || made.Spec.RevisionHistoryLimit == nil {
		return fmt.Errorf("created without what the server adds: %+v", made)
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := deployments.Get(ctx, "typed", meta.GetOptions{})
		if err != nil {
			return err
		}
		live.Spec.Template.Spec.Containers[0].Image = "a:2"
		_, err = deployments.Update(ctx, live, meta.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	scale, err := deployments.GetScale(ctx, "typed", meta.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 5
	if _, err := deployments.UpdateScale(ctx, "typed", scale, meta.UpdateOptions{}); err != nil {
		return err
	}
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"b:1"}]}}}}`)
	patched, err := deployments.Patch(ctx, "typed", types.StrategicMergePatchType, patch, meta.PatchOptions{})
	if err != nil {
		return err
	}
	if n := len(patched.Spec.Template.Spec.Containers); n != 2 || *patched.Spec.Replicas != 5 || patched.Generation != 4 {
		return fmt.Errorf("patched to %d containers, %d replicas, generation %d", n, *patched.Spec.Replicas, patched.Generation)
	}
	patched.Status.Replicas = 5
	patched.Status.ObservedGeneration = 4
	status, err := deployments.UpdateStatus(ctx, patched, meta.UpdateOptions{})
	if err != nil || status.Status.ObservedGeneration != 4 {
		return fmt.Errorf("status %+v, %w", status.Status, err)
	}
	secrets := w.typed.CoreV1().Secrets(w.namespace)
	secret := applycore.Secret("typed", w.namespace).WithStringData(map[string]string{"a": "b"})
	applied, err := secrets.Apply(ctx, secret, meta.ApplyOptions{FieldManager: "clients"})
	if err != nil || string(applied.Data["a"]) != "b" {
		return fmt.Errorf("applied %v, %w", applied, err)
	}
	background := meta.DeletePropagationBackground
	if err := deployments.Delete(ctx, "typed", meta.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return err
	}
	return secrets.DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{FieldSelector: "metadata.name=typed"})
}

func errorKinds(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	made, err := maps.Create(ctx, configMap("errors", nil), meta.CreateOptions{})
	if err != nil {
		return err
	}
	defer maps.Delete(ctx, "errors", meta.DeleteOptions{})
	_, exists := maps.Create(ctx, configMap("errors", nil), meta.CreateOptions{})
	_, missing := maps.Get(ctx, "none", meta.GetOptions{})
	_, invalid := maps.Create(ctx, configMap("Not_A_Name", nil), meta.CreateOptions{})
	changed := made.DeepCopy()
	changed.Data = map[string]string{"a": "1"}
	if _, err := maps.Update(ctx, changed, meta.UpdateOptions{}); err != nil {
		return err
	}
	_, conflict := maps.Update(ctx, made, meta.UpdateOptions{})
	uid := types.UID("another")
	precondition := maps.Delete(ctx, "errors", meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &uid}})
	_, expired := maps.List(ctx, meta.ListOptions{Continue: "nonsense"})
	for name, right := range map[string]bool{
		"AlreadyExists": apierrors.IsAlreadyExists(exists),
		"NotFound":      apierrors.IsNotFound(missing),
		"Invalid":       apierrors.IsInvalid(invalid),
		"Conflict":      apierrors.IsConflict(conflict),
		"precondition":  apierrors.IsConflict(precondition),
		"BadRequest":    apierrors.IsBadRequest(expired),
	} {
		if !right {
			return fmt.Errorf("no %s among %v", name, []error{exists, missing, invalid, conflict, precondition, expired})
		}
	}
	return nil
}

func configMap(name string, data map[string]string) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"made-by": "clients"}}, Data: data}
}

func pages(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	const count = 10
	for i := range count {
		made := configMap(fmt.Sprintf("page-%02d", i), nil)
		made.Labels = map[string]string{"paged": "yes"}
		if _, err := maps.Create(ctx, made, meta.CreateOptions{}); err != nil {
			return err
		}
	}
	options := meta.ListOptions{LabelSelector: "paged=yes"}
	var lists int
	pager := pager.New(func(ctx context.Context, options meta.ListOptions) (runtime.Object, error) {
		lists++
		return maps.List(ctx, options)
	})
	pager.PageSize = 3
	var names []string
	err := pager.EachListItem(ctx, options, func(object runtime.Object) error {
		names = append(names, object.(*core.ConfigMap).Name)
		return nil
	})
	if err != nil {
		return err
	}
	if len(names) != count || !slices.IsSorted(names) || lists != 4 {
		return fmt.Errorf("%d lists gave %v", lists, names)
	}
	return maps.DeleteCollection(ctx, meta.DeleteOptions{}, options)
}

func discoveryAgrees(ctx context.Context, w *world) error {
	discovery := w.typed.Discovery()
	groups, resources, err := discovery.ServerGroupsAndResources()
	if err != nil || len(groups) < 10 || len(resources) < 10 {
		return fmt.Errorf("%d groups, %d lists of resources, %w", len(groups), len(resources), err)
	}
	mapped, err := restmapper.GetAPIGroupResources(discovery)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(mapped)
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	if err != nil || mapping.Resource.Resource != "deployments" || mapping.Scope.Name() != "namespace" {
		return fmt.Errorf("mapped to %v, %w", mapping, err)
	}
	spec, err := openapi3.NewRoot(discovery.OpenAPIV3()).GVSpec(schema.GroupVersion{Group: "apps", Version: "v1"})
	if err != nil {
		return err
	}
	if spec.Components.Schemas["io.k8s.api.apps.v1.DeploymentSpec"].Properties["replicas"].Format != "int32" {
		return errors.New("OpenAPI does not know the replicas of a Deployment")
	}
	return nil
}

func reviews(ctx context.Context, w *world) error {
	access := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorization.ResourceAttributes{Namespace: w.namespace, Verb: "get", Resource: "pods"},
	}}
	answer, err := w.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, access, meta.CreateOptions{})
	if err != nil || !answer.Status.Allowed {
		return fmt.Errorf("review %+v, %w", answer.Status, err)
	}
	accounts := w.typed.CoreV1().ServiceAccounts(w.namespace)
	if _, err := accounts.Create(ctx, &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: "robot"}}, meta.CreateOptions{}); err != nil {
		return err
	}
	token, err := accounts.CreateToken(ctx, "robot", &authentication.TokenRequest{}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	review := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token.Status.Token}}
	known, err := w.typed.AuthenticationV1().TokenReviews().Create(ctx, review, meta.CreateOptions{})
	name := "system:serviceaccount:" + w.namespace + ":robot"
	if err != nil || !known.Status.Authenticated || known.Status.User.Username != name {
		return fmt.Errorf("the token is of %+v, %w", known.Status, err)
	}
	return nil
}

func definition(ctx context.Context, w *world) error {
	text := map[string]any{"type": "string"}
	number := map[string]any{"type": "integer", "minimum": int64(0)}
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": "widgets.clients.example.com"},
		"spec": map[string]any{
			"group": "clients.example.com",
			"scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{
					"status": map[string]any{},
					"scale":  map[string]any{"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
				},
				"schema": map[string]any{"openAPIV3Schema": object(map[string]any{
					"spec":   object(map[string]any{"size": number, "color": text}),
					"status": object(map[string]any{"size": number}),
				})},
			}},
		},
	}}
	if _, err := w.dynamic.Resource(definitions).Create(ctx, crd, meta.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return eventually(ctx, func() error {
		_, err := w.dynamic.Resource(widgets).Namespace(w.namespace).List(ctx, meta.ListOptions{})
		return err
	})
}

func customObjects(ctx context.Context, w *world) error {
	objects := w.dynamic.Resource(widgets).Namespace(w.namespace)
	if _, err := objects.Apply(ctx, "one", widget("one", 1), meta.ApplyOptions{FieldManager: "a"}); err != nil {
		return err
	}
	_, conflict := objects.Apply(ctx, "one", widget("one", 2), meta.ApplyOptions{FieldManager: "b"})
	if !apierrors.IsConflict(conflict) {
		return fmt.Errorf("no conflict but %v", conflict)
	}
	if _, err := objects.Apply(ctx, "one", widget("one", 2), meta.ApplyOptions{FieldManager: "b", Force: true}); err != nil {
		return err
	}
	patch := []byte(`{"spec":{"color":"red"}}`)
	if _, err := objects.Patch(ctx, "one", types.MergePatchType, patch, meta.PatchOptions{}); err != nil {
		return err
	}
	status := []byte(`{"status":{"size":2},"spec":{"size":7}}`)
	if _, err := objects.Patch(ctx, "one", types.MergePatchType, status, meta.PatchOptions{}, "status"); err != nil {
		return err
	}
	live, err := objects.Get(ctx, "one", meta.GetOptions{})
	if err != nil {
		return err
	}
	spec, _, _ := unstructured.NestedMap(live.Object, "spec")
	size, _, _ := unstructured.NestedInt64(live.Object, "status", "size")
	if fmt.Sprint(spec) != "map[color:red size:2]" || size != 2 || live.GetGeneration() != 3 {
		return fmt.Errorf("it is %v", live.Object)
	}
	if _, err := objects.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"size":-1}}`), meta.PatchOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a size of -1: %v", err)
	}
	scaled, err := objects.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), meta.PatchOptions{}, "scale")
	if err != nil || scaled.GetKind() != "Scale" {
		return fmt.Errorf("scaled to %v, %w", scaled, err)
	}
	return objects.Delete(ctx, "one", meta.DeleteOptions{})
}

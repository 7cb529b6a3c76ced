package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managerCache reads as controllers built with controller-runtime do: from a
// cache that watches what it is asked for.
func managerCache(ctx context.Context, w *world) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cached, err := cache.New(w.config, cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}})
	if err != nil {
		return err
	}
	kind := widget("", 0)
	byColor := func(object client.Object) []string {
		color, _, _ := unstructured.NestedString(object.(*unstructured.Unstructured).Object, "spec", "color")
		return []string{color}
	}
	if err := cached.IndexField(ctx, kind, "spec.color", byColor); err != nil {
		return err
	}
	go cached.Start(ctx)
	if !cached.WaitForCacheSync(ctx) {
		return errors.New("the cache did not sync")
	}
	reads, err := client.New(w.config, client.Options{Cache: &client.CacheOptions{Reader: cached, Unstructured: true}})
	if err != nil {
		return err
	}
	for i, color := range []string{"red", "green", "red"} {
		object := widget(fmt.Sprintf("cached-%d", i), int64(i))
		object.SetNamespace(w.namespace)
		if err := unstructured.SetNestedField(object.Object, color, "spec", "color"); err != nil {
			return err
		}
		if err := reads.Create(ctx, object); err != nil {
			return err
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersionKind())
	err = eventually(ctx, func() error {
		selected := []client.ListOption{client.InNamespace(w.namespace), client.MatchingFields{"spec.color": "red"}}
		if err := reads.List(ctx, list, selected...); err != nil {
			return err
		}
		if len(list.Items) != 2 {
			return fmt.Errorf("%d are red", len(list.Items))
		}
		return nil
	})
	if err != nil {
		return err
	}
	one := widget("cached-0", 0)
	key := client.ObjectKey{Namespace: w.namespace, Name: "cached-0"}
	if err := reads.Get(ctx, key, one); err != nil {
		return err
	}
	before := one.DeepCopy()
	if err := unstructured.SetNestedField(one.Object, int64(9), "spec", "size"); err != nil {
		return err
	}
	if err := reads.Patch(ctx, one, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(one.Object, int64(3), "status", "size"); err != nil {
		return err
	}
	if err := reads.Status().Update(ctx, one); err != nil {
		return err
	}
	err = eventually(ctx, func() error {
		if err := reads.Get(ctx, key, one); err != nil {
			return err
		}
		size, _, _ := unstructured.NestedInt64(one.Object, "spec", "size")
		status, _, _ := unstructured.NestedInt64(one.Object, "status", "size")
		if size != 9 || status != 3 {
			return fmt.Errorf("the cache has %d and %d", size, status)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := reads.DeleteAllOf(ctx, kind, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		if err := reads.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d are left", len(list.Items))
		}
		return nil
	})
}

// leases elects a leader, who resigns, and a second one.
func leases(ctx context.Context, w *world) error {
	for _, name := range []string{"first", "second"} {
		ctx, cancel := context.WithCancel(ctx)
		led := false
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  meta.ObjectMeta{Namespace: w.namespace, Name: "leader"},
			Client:     w.typed.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock:            lock,
			LeaseDuration:   15 * time.Second,
			RenewDeadline:   10 * time.Second,
			RetryPeriod:     100 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { led = true; cancel() },
				OnStoppedLeading: func() {},
			},
		})
		cancel()
		if !led {
			return fmt.Errorf("%s did not lead", name)
		}
	}
	lease, err := w.typed.CoordinationV1().Leases(w.namespace).Get(ctx, "leader", meta.GetOptions{})
	if err != nil || *lease.Spec.LeaseTransitions != 1 {
		return fmt.Errorf("the lease is %+v, %w", lease.Spec, err)
	}
	return nil
}

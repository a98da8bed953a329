// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// backUp writes all Repositories to the file. One that an earlier call has written is replaced only
// if all its Repositories are there.
func (o *Operator) backUp(s *operated) error {
	earlier, err := readBackup(o.Backup)
	if err != nil {
		return err
	}
	if err := o.missing(earlier, s); err != nil {
		return err
	}
	list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for i := range s.repositories {
		item := *s.repositories[i].DeepCopy()
		item.SetResourceVersion("") // kubectl create refuses one
		item.SetManagedFields(nil)
		list.Items = append(list.Items, item)
	}
	data, err := yaml.Marshal(list.UnstructuredContent())
	if err == nil {
		err = replaceFile(o.Backup, data)
	}
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	o.say("All %d Repositories are in the file %s", len(s.repositories), o.Backup)
	return nil
}

// readBackup returns the names of the Repositories of a file, none if there is no file.
func readBackup(file string) (names []types.NamespacedName, err error) {
	data, err := os.ReadFile(file) // #nosec G304 -- the user names it
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list struct {
		Items []metav1.PartialObjectMetadata
	}
	if err == nil {
		err = yaml.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the backup of an earlier call: %w: move %s away, or name another file with --backup",
			err, file)
	}
	for _, item := range list.Items {
		names = append(names, types.NamespacedName{Namespace: item.Namespace, Name: item.Name})
	}
	return names, nil
}

// replaceFile writes a file that only the user may read. A process that is killed leaves the old or
// the new one.
func replaceFile(name string, data []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// kept reads the cluster again. It returns an error if a Repository of before is gone.
func (o *Operator) kept(ctx context.Context, before *operated) (*operated, error) {
	now, err := o.read(ctx)
	switch {
	case err != nil:
		return now, err
	case now.definition.GetUID() != before.definition.GetUID() || now.definition.GetDeletionTimestamp() != nil:
		return now, fmt.Errorf("CustomResourceDefinition %s was deleted, and all Repositories with it. %s",
			definitionName, o.restore())
	}
	return now, o.missing(before.names(), now)
}

func (o *Operator) still(ctx context.Context, before *operated) error {
	_, err := o.kept(ctx, before)
	return err
}

// missing returns an error that lists wanted Repositories that do not exist. One that was restored
// has the same name.
func (o *Operator) missing(wanted []types.NamespacedName, now *operated) error {
	const shown = 5
	var gone []string
	for _, name := range sets.New(wanted...).Delete(now.names()...).UnsortedList() {
		gone = append(gone, name.String())
	}
	if len(gone) == 0 {
		return nil
	}
	slices.Sort(gone)
	return fmt.Errorf("%d Repositories are gone, among them %s. %s If they were deleted on purpose, move the file away",
		len(gone), strings.Join(gone[:min(shown, len(gone))], ", "), o.restore())
}

func (o *Operator) restore() string {
	return "The backup is " + o.Backup + ": kubectl create -f " + o.Backup + "."
}

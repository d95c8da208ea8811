package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/jsonpath"
)

// jsonPath is a path into an object, in kubectl's language; the braces and the first
// dot can be left out: ".status.phase".
type jsonPath struct{ path *jsonpath.JSONPath }

func parseJSONPath(text string) (jsonPath, error) {
	path := strings.TrimSpace(text)
	if !strings.HasPrefix(path, "{") {
		path = "{." + strings.TrimPrefix(path, ".") + "}"
	}
	p := jsonpath.New("path").AllowMissingKeys(true)
	if err := p.Parse(path); err != nil {
		return jsonPath{}, fmt.Errorf("%q: %w", text, err)
	}
	return jsonPath{p}, nil
}

// value returns what stands there in the object's JSON, as text; "" is nothing.
func (p jsonPath) value(object any) (string, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = p.path.Execute(&out, plain)
	return out.String(), err
}

// sortByPath orders items by what stands at the path, which text says, of their objects:
// numbers and amounts by their value, and before others.
func sortByPath[T any](items []T, text string, path jsonPath, object func(T) any) error {
	type keyed struct {
		item   T
		text   string
		amount *resource.Quantity
	}
	list := make([]keyed, len(items))
	for at, i := range items {
		value, err := path.value(object(i))
		if err != nil {
			return fmt.Errorf("--sort-by %s: %w", text, err)
		}
		list[at] = keyed{item: i, text: value}
		if q, err := resource.ParseQuantity(value); err == nil {
			list[at].amount = &q
		}
	}
	slices.SortStableFunc(list, func(x, y keyed) int {
		switch {
		case x.amount != nil && y.amount != nil:
			return x.amount.Cmp(*y.amount)
		case x.amount != nil:
			return -1
		case y.amount != nil:
			return 1
		}
		return cmp.Compare(x.text, y.text)
	})
	for at, k := range list {
		items[at] = k.item
	}
	return nil
}

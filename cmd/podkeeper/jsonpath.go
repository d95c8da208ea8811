package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

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

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// This file reads the values of a kubelet's configuration as those of our flags.

func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func readString(n *yaml.Node) ([]string, error) {
	switch {
	case isNull(n):
		return nil, nil
	case n.Kind != yaml.ScalarNode || n.Tag != "!!str":
		return nil, errors.New("want a string")
	case n.Value == "":
		return nil, nil
	}
	return []string{n.Value}, nil
}

// readStrings reads a list of strings.
func readStrings(n *yaml.Node) ([]string, error) {
	var list []string
	if n.Decode(&list) != nil {
		return nil, errors.New("want a list of strings")
	}
	return list, nil
}

// readEnforced reads a list of strings, where an empty one, other than none, means that
// nothing is enforced.
func readEnforced(n *yaml.Node) ([]string, error) {
	list, err := readStrings(n)
	if list != nil && len(list) == 0 {
		return []string{"none"}, err
	}
	return list, err
}

// readDuration reads what metav1.Duration writes.
func readDuration(n *yaml.Node) ([]string, error) {
	values, err := readString(n)
	if err != nil || len(values) == 0 {
		return values, err
	}
	d, err := time.ParseDuration(values[0])
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q: want a duration such as 20s", values[0])
	case d < 0:
		return nil, fmt.Errorf("%s: want 0 or more", values[0])
	}
	return values, nil
}

func readList(n *yaml.Node) ([]string, error) {
	var list []string
	if !isNull(n) && (n.Kind != yaml.SequenceNode || n.Decode(&list) != nil) {
		return nil, errors.New("want a list of strings")
	}
	return list, nil
}

func readSize(n *yaml.Node) ([]string, error) {
	values, err := readString(n)
	if err != nil || len(values) == 0 {
		return values, err
	}
	_, err = parseSize(values[0])
	return values, err
}

func readCount(n *yaml.Node) ([]string, error) {
	if isNull(n) {
		return nil, nil
	}
	count, err := strconv.Atoi(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil:
		return nil, errors.New("want a whole number")
	case count < 1:
		return nil, fmt.Errorf("%d: want 1 or more", count)
	}
	return []string{n.Value}, nil
}

// readQuantities reads a map of quantities.
func readQuantities(n *yaml.Node) ([]string, error) {
	var quantities map[string]string
	if !isNull(n) && n.Decode(&quantities) != nil {
		return nil, errors.New("want a map of quantities")
	}
	var pairs []string
	for _, name := range sorted(quantities) {
		pairs = append(pairs, name+"="+quantities[name])
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	return []string{strings.Join(pairs, ",")}, nil
}

func readBool(n *yaml.Node) ([]string, error) {
	switch {
	case isNull(n):
		return nil, nil
	case n.Kind != yaml.ScalarNode || n.Tag != "!!bool":
		return nil, errors.New("want true or false")
	}
	return []string{n.Value}, nil
}

// readInteger leaves it to the flag which ones can be.
func readInteger(n *yaml.Node) ([]string, error) {
	switch {
	case isNull(n):
		return nil, nil
	case n.Kind != yaml.ScalarNode || n.Tag != "!!int":
		return nil, errors.New("want a whole number")
	}
	return []string{n.Value}, nil
}

// readPort reads one where 0 asks for the default.
func readPort(n *yaml.Node) ([]string, error) {
	values, err := readInteger(n)
	if len(values) == 1 && values[0] == "0" {
		return nil, nil
	}
	return values, err
}

// readLimit reads a count, or -1 for none.
func readLimit(n *yaml.Node) ([]string, error) {
	if n.Kind == yaml.ScalarNode && n.Value == "-1" {
		return []string{n.Value}, nil
	}
	return readCount(n)
}

// readMap reads a map of strings, as the flag has them: names and values with that
// sign between.
func readMap(sign string) func(*yaml.Node) ([]string, error) {
	return func(n *yaml.Node) ([]string, error) {
		if isNull(n) {
			return nil, nil
		}
		var entries map[string]string
		if n.Kind != yaml.MappingNode || n.Decode(&entries) != nil {
			return nil, errors.New("want a map of strings")
		}
		list := []string{} // an empty map asks for none
		for _, name := range sorted(entries) {
			list = append(list, name+sign+entries[name])
		}
		if len(list) == 0 {
			return []string{""}, nil
		}
		return list, nil
	}
}

// readHeaders reads a map of lists. No error repeats a value: they are secrets.
func readHeaders(n *yaml.Node) ([]string, error) {
	if isNull(n) {
		return nil, nil
	}
	var header map[string][]string
	if n.Decode(&header) != nil {
		return nil, errors.New("want a map of lists of strings")
	}
	var lines []string
	for _, name := range sorted(header) {
		for _, value := range header[name] {
			lines = append(lines, name+": "+value)
		}
	}
	if _, err := parseHeaders(lines); err != nil {
		return nil, errors.New("want names and values of HTTP headers")
	}
	return lines, nil
}

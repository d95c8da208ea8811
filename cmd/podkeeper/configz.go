package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/podkeeper/podkeeper/sources"
)

// effective returns the configuration that the flags make up, as a
// KubeletConfiguration: every field that a flag stands for, but for those that are
// empty. Values of headers are masked, and so are passwords in URLs.
func effective(flags *pflag.FlagSet) map[string]any {
	config := map[string]any{
		"apiVersion": kubeletAPI, "kind": kubeletKind,
		// These cannot be set.
		"syncFrequency": "5m0s",
		"authorization": map[string]any{"mode": "AlwaysAllow"},
	}
	for field, at := range kubeletFields() {
		flag := flags.Lookup(at.flag)
		if flag == nil {
			continue
		}
		value := shown(field, flag.Value)
		if value == nil {
			continue
		}
		into := config
		names := strings.Split(field, ".")
		for _, name := range names[:len(names)-1] {
			below, _ := into[name].(map[string]any)
			if below == nil {
				below = map[string]any{}
				into[name] = below
			}
			into = below
		}
		into[names[len(names)-1]] = value
	}
	return config
}

// shown returns the value of a flag as its field has it, nil for an empty one.
func shown(field string, value pflag.Value) any {
	text := value.String()
	list, isList := []string(nil), false
	if s, ok := value.(pflag.SliceValue); ok {
		list, isList = s.GetSlice(), true
		list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
		text = strings.Join(list, ",")
	}
	if text == "" {
		return nil
	}
	switch field {
	case "staticPodPath":
		return text
	case "staticPodURL":
		names, err := sources.NamesOfURLs(list)
		if err != nil {
			return "***"
		}
		return strings.Join(names, ",")
	case "staticPodURLHeader":
		return maskedHeaders(list)
	case "systemReserved", "kubeReserved", "evictionSoftGracePeriod", "evictionMinimumReclaim":
		return pairs(text, "=")
	case "evictionHard", "evictionSoft":
		return pairs(text, "<")
	case "shutdownGracePeriodByPodPriority":
		return shutdownGroups(list)
	}
	switch v := value.Type(); {
	case isList:
		return list
	case v == "bool":
		return text == "true"
	case strings.HasPrefix(v, "int"):
		return number(text)
	default:
		return text
	}
}

func pairs(text, sign string) map[string]string {
	m := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, sign)
		m[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return m
}

func maskedHeaders(lines []string) map[string][]string {
	m := map[string][]string{}
	for _, line := range lines {
		name, _, _ := strings.Cut(line, ":")
		m[name] = append(m[name], "***")
	}
	return m
}

// shutdownGroups turns what readShutdownGroups makes back.
func shutdownGroups(list []string) []map[string]int64 {
	var groups []map[string]int64
	for _, text := range list {
		priority, period, _ := strings.Cut(text, "=")
		d, _ := time.ParseDuration(period)
		groups = append(groups, map[string]int64{"priority": number(priority), "shutdownGracePeriodSeconds": int64(d / time.Second)})
	}
	return groups
}

// number reads what a flag has checked.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// kubeletAPI is what a configuration file says it is.
const (
	kubeletAPI  = "kubelet.config.k8s.io/v1beta1"
	kubeletKind = "KubeletConfiguration"
)

// kubeletField says what a field of KubeletConfiguration stands for here: the
// flag that it sets, and how its value is read as that of the flag.
type kubeletField struct {
	flag string
	// read returns the values to give the flag, none where the field asks for the
	// default.
	read func(*yaml.Node) ([]string, error)
}

// kubeletFields are those with a counterpart.
func kubeletFields() map[string]kubeletField {
	return map[string]kubeletField{
		"staticPodPath":          {"manifests", readString},
		"staticPodURL":           {"manifest-url", readString},
		"staticPodURLHeader":     {"manifest-url-header", readHeaders},
		"fileCheckFrequency":     {"file-check-frequency", readDuration},
		"httpCheckFrequency":     {"http-check-frequency", readDuration},
		"podLogsDir":             {"pod-logs-dir", readString},
		"clusterDNS":             {"cluster-dns", readList},
		"clusterDomain":          {"cluster-domain", readString},
		"resolvConf":             {"resolv-conf", readString},
		"containerLogMaxSize":    {"container-log-max-size", readSize},
		"containerLogMaxFiles":   {"container-log-max-files", readCount},
		"maxPods":                {"max-pods", readCount},
		"podPidsLimit":           {"pod-max-pids", readLimit},
		"cpuManagerPolicy":       {"cpu-manager-policy", readString},
		"reservedSystemCPUs":     {"reserved-cpus", readString},
		"systemReserved":         {"system-reserved", readQuantities},
		"kubeReserved":           {"kube-reserved", readQuantities},
		"enforceNodeAllocatable": {"enforce-node-allocatable", readEnforced},
		"systemReservedCgroup":   {"system-reserved-cgroup", readString},
		"kubeReservedCgroup":     {"kube-reserved-cgroup", readString},
		"systemCgroups":          {"system-cgroups", readString},
		"kubeletCgroups":         {"kubelet-cgroups", readString},
		"protectKernelDefaults":  {"protect-kernel-defaults", readBool},
		"cgroupsPerQOS":          {"cgroups-per-qos", readBool},
		"cgroupRoot":             {"cgroup-root", readString},
		"cgroupDriver":           {"cgroup-driver", readString},
		"cpuCFSQuota":            {"cpu-cfs-quota", readBool},
		"cpuCFSQuotaPeriod":      {"cpu-cfs-quota-period", readDuration},
		"oomScoreAdj":            {"oom-score-adj", readInteger},
		"allowedUnsafeSysctls":   {"allowed-unsafe-sysctls", readStrings},

		"imageGCHighThresholdPercent": {"image-gc-high-threshold", readInteger},
		"imageGCLowThresholdPercent":  {"image-gc-low-threshold", readInteger},
		"imageMinimumGCAge":           {"minimum-image-ttl-duration", readDuration},
		"imageMaximumGCAge":           {"maximum-image-ttl-duration", readDuration},

		"evictionHard":                     {"eviction-hard", readMap("<")},
		"evictionSoft":                     {"eviction-soft", readMap("<")},
		"evictionSoftGracePeriod":          {"eviction-soft-grace-period", readMap("=")},
		"evictionMinimumReclaim":           {"eviction-minimum-reclaim", readMap("=")},
		"evictionPressureTransitionPeriod": {"eviction-pressure-transition-period", readDuration},
		"evictionMaxPodGracePeriod":        {"eviction-max-pod-grace-period", readInteger},

		"address":                          {"address", readString},
		"port":                             {"port", readPort},
		"readOnlyPort":                     {"read-only-port", readInteger},
		"healthzPort":                      {"healthz-port", readInteger},
		"healthzBindAddress":               {"healthz-bind-address", readString},
		"tlsCertFile":                      {"tls-cert-file", readString},
		"tlsPrivateKeyFile":                {"tls-private-key-file", readString},
		"authentication.anonymous.enabled": {"anonymous-auth", readBool},
		"authentication.x509.clientCAFile": {"client-ca-file", readString},
		"enableDebuggingHandlers":          {"enable-debugging-handlers", readBool},
		"enableProfilingHandler":           {"profiling", readBool},
		"enableSystemLogHandler":           {"enable-system-log-handler", readBool},
		"streamingConnectionIdleTimeout":   {"streaming-connection-idle-timeout", readDuration},

		"shutdownGracePeriod":              {"shutdown-grace-period", readDuration},
		"shutdownGracePeriodCriticalPods":  {"shutdown-grace-period-critical-pods", readDuration},
		"shutdownGracePeriodByPodPriority": {"shutdown-grace-period-by-pod-priority", readShutdownGroups},
	}
}

// applyKubeletFile gives the flags that were not given the values of the file.
// A field whose flag the command does not have says nothing to it. One warning
// names the fields that have no counterpart, another those that no kubelet knows.
func applyKubeletFile(path string, flags *pflag.FlagSet, log *slog.Logger) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	entries, errs := kubeletEntries(path, data)
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	fields := kubeletFields()
	merge, err := mergesEvictionDefaults(path, entries)
	errs = append(errs, err)
	var idle, unknown []string
	for _, e := range entries {
		field, ok := fields[e.name]
		switch {
		case ok:
			values, err := field.read(e.value)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s:%d: %s: %w", path, e.value.Line, e.name, err))
				continue
			}
			if given[field.flag] || flags.Lookup(field.flag) == nil {
				continue
			}
			if merge && e.name == "evictionHard" {
				values = withDefaultHard(values)
			}
			for _, v := range values {
				if err := flags.Set(field.flag, v); err != nil {
					errs = append(errs, fmt.Errorf("%s:%d: %s: %w", path, e.value.Line, e.name, err))
				}
			}
		case e.name == mergeField:
		case e.name == "authorization.mode" && e.value.Value == "AlwaysAllow": // as it is
		case e.name == "runOnce":
			errs = append(errs, fmt.Errorf("%s:%d: runOnce: no kubelet takes it any more; use --runonce", path, e.line))
		case slices.Contains(strings.Fields(kubeletFieldsWithoutCounterpart), e.name):
			idle = append(idle, e.name)
		default:
			unknown = append(unknown, fmt.Sprintf("%s (line %d)", e.name, e.line))
		}
	}
	if len(idle) > 0 {
		log.Warn("fields of the kubelet's configuration have no counterpart here", "file", path, "fields", strings.Join(idle, ", "))
	}
	if len(unknown) > 0 {
		log.Warn("unknown fields in the kubelet's configuration", "file", path, "fields", strings.Join(unknown, ", "))
	}
	return errors.Join(errs...)
}

// mergeField has evictionHard keep the defaults of signals that it does not name.
const mergeField = "mergeDefaultEvictionSettings"

func mergesEvictionDefaults(path string, entries []kubeletEntry) (bool, error) {
	for _, e := range entries {
		if e.name == mergeField {
			values, err := readBool(e.value)
			if err != nil {
				return false, fmt.Errorf("%s:%d: %s: %w", path, e.value.Line, e.name, err)
			}
			return slices.Contains(values, "true"), nil
		}
	}
	return false, nil
}

// withDefaultHard adds the default thresholds of the signals that have none.
func withDefaultHard(thresholds []string) []string {
	for _, text := range defaultHard() {
		signal, _, _ := strings.Cut(text, "<")
		if !slices.ContainsFunc(thresholds, func(t string) bool { return strings.HasPrefix(t, signal+"<") }) {
			thresholds = append(thresholds, text)
		}
	}
	return thresholds
}

type kubeletEntry struct {
	name  string
	line  int
	value *yaml.Node
}

// kubeletEntries returns the fields of the file, kind and apiVersion checked.
func kubeletEntries(path string, data []byte) (entries []kubeletEntry, errs []error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, []error{fmt.Errorf("%s: %w", path, err)}
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, []error{fmt.Errorf("%s: want a %s (%s)", path, kubeletKind, kubeletAPI)}
	}
	header := map[string]string{"apiVersion": "", "kind": ""}
	seen := map[string]bool{}
	for _, e := range flatten("", doc.Content[0]) {
		if seen[e.name] {
			errs = append(errs, fmt.Errorf("%s:%d: %s: given twice", path, e.line, e.name))
		}
		seen[e.name] = true
		if _, ok := header[e.name]; ok {
			header[e.name] = e.value.Value
		} else {
			entries = append(entries, e)
		}
	}
	if header["apiVersion"] != kubeletAPI || header["kind"] != kubeletKind {
		errs = append(errs, fmt.Errorf("%s: it is %q of %q, want %s of %s", path, header["kind"], header["apiVersion"], kubeletKind, kubeletAPI))
	}
	return entries, errs
}

// flatten returns the fields of a mapping; those of the fields that have fields of their
// own with a flag each have those names before theirs, with dots between.
func flatten(before string, mapping *yaml.Node) (entries []kubeletEntry) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], resolveAlias(mapping.Content[i+1])
		e := kubeletEntry{name: before + key.Value, line: key.Line, value: value}
		first, _, _ := strings.Cut(e.name, ".")
		if value.Kind == yaml.MappingNode && (first == "authentication" || first == "authorization") {
			entries = append(entries, flatten(e.name+".", value)...)
			continue
		}
		entries = append(entries, e)
	}
	return entries
}

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

// kubeletFieldsWithoutCounterpart are the other fields that a kubelet knows.
const kubeletFieldsWithoutCounterpart = `
	authentication.webhook.cacheTTL
	authentication.webhook.enabled
	authorization.mode
	authorization.webhook.cacheAuthorizedTTL
	authorization.webhook.cacheUnauthorizedTTL
	configMapAndSecretChangeDetectionStrategy
	containerLogMaxWorkers
	containerLogMonitorInterval
	containerRuntimeEndpoint
	contentType
	cpuManagerPolicyOptions
	cpuManagerReconcilePeriod
	crashLoopBackOff
	enableContentionProfiling
	enableControllerAttachDetach
	enableDebugFlagsHandler
	enableServer
	enableSystemLogQuery
	eventBurst
	eventRecordQPS
	failCgroupV1
	failSwapOn
	featureGates
	hairpinMode
	imagePullCredentialsVerificationPolicy
	imageServiceEndpoint
	iptablesDropBit
	iptablesMasqueradeBit
	kernelMemcgNotification
	kubeAPIBurst
	kubeAPIQPS
	localStorageCapacityIsolation
	logging
	makeIPTablesUtilChains
	maxOpenFiles
	maxParallelImagePulls
	memoryManagerPolicy
	memorySwap
	memoryThrottlingFactor
	nodeLeaseDurationSeconds
	nodeStatusMaxImages
	nodeStatusReportFrequency
	nodeStatusUpdateFrequency
	podCIDR
	podsPerCore
	preloadedImagesVerificationAllowlist
	providerID
	qosReserved
	registerNode
	registerWithTaints
	registryBurst
	registryPullQPS
	reservedMemory
	rotateCertificates
	runtimeRequestTimeout
	seccompDefault
	serializeImagePulls
	serverTLSBootstrap
	showHiddenMetricsForVersion
	singleProcessOOMKill
	syncFrequency
	tlsCipherSuites
	tlsCurvePreferences
	tlsMinVersion
	topologyManagerPolicy
	topologyManagerPolicyOptions
	topologyManagerScope
	tracing
	userNamespaces
	volumePluginDir
	volumeStatsAggPeriod
`

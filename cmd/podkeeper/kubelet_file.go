package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

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

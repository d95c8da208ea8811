package oracle

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// What fields are given: values that are good for most, those of closed sets
// (with one that is in none), and those at the edges.

var goodNames = []string{"a", "web", "db-1", "data", "tmp", "sidecar", "x2", "cfg"}

var goodKeys = []string{"app", "example.com/tier", "a.b-c_d", "x"}

var goodLabelValues = []string{"", "1", "web", "A_b.c-d"}

var resourceNames = []string{
	"cpu", "cpu", "memory", "memory", "ephemeral-storage", "hugepages-2Mi", "hugepages-1Gi", "example.com/gpu",
	"storage", "kubernetes.io/thing",
}

var quantities = []string{"0", "1", "2", "100m", "1m", "500u", "1500u", "64Mi", "4Mi", "1Gi", "2Gi", "1e3", "1.5", "10n"}

var strangeQuantities = append([]string{"-1", "-1m", "3Mi", "1Mi", "9E", "0.1", "-0", "1k", "1Ki"}, quantities...)

var ports = []intstr.IntOrString{
	intstr.FromInt32(80), intstr.FromInt32(8080), intstr.FromInt32(65535), intstr.FromString("http"),
	intstr.FromInt32(0), intstr.FromInt32(65536), intstr.FromInt32(-1), intstr.FromString("80"),
	intstr.FromString(""), intstr.FromString("a-name-that-is-too-long"), intstr.FromString("HTTP"),
}

func goodNumbers(name string) []int64 {
	switch {
	case strings.HasSuffix(name, "Port"), name == "Port":
		return []int64{80, 80, 8080, 53, 1, 65535}
	case strings.HasSuffix(name, "Mode"):
		return []int64{0o644, 0o400, 0, 0o777, 0o1777}
	case strings.HasSuffix(name, "Threshold"):
		return []int64{1, 1, 0, 3}
	case name == "ExpirationSeconds", name == "MaxExpirationSeconds":
		return []int64{600, 3600, 86400, 86401, 7862400}
	}
	return []int64{1, 1, 2, 10, 30, 100, 0}
}

var strangeNumbers = []int64{
	-1, 0, 1, 2, 100, 101, 255, 256, 511, 512, 599, 600, 1023, 1024, 3599, 3600, 65535, 65536, 86400, 86401,
	7862400, 7862401, math.MaxInt32, math.MinInt32, math.MaxInt32 + 1, 1 << 32, 1<<32 + 1, math.MaxInt64, math.MinInt64,
}

// strange has what breaks the syntax of some field or other, and much that only
// looks as if it did, by what it looks like.
var strange = map[string][]string{
	"plain": {
		"", " ", " nginx ", "A", "a_b", "a.b", "-a", "a-", "a.-b", "a--b", "a..b", "é", "日本", "\x00", "a\nb", "0", "1", "08", "+1", "-1",
		"True", "A B", "A=B", "1X", "my.var-x", "$(A)", "x", "Nope",
		strings.Repeat("a", 15), strings.Repeat("a", 16), strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 65),
		strings.Repeat("a", 253), strings.Repeat("a", 254), strings.Repeat("a.", 126) + "b", strings.Repeat("b.", 127) + "c",
	},
	"path": {
		".", "..", "../a", "a/..", "a/../b", "..a", "...", "..a/b", "/a/../b", "/", "/abs", "a/b", "a/b/", "", "a", " a", strings.Repeat("a", 4095), strings.Repeat("a", 4096),
	},
	"key": {
		"a/b", "a/b/c", "kubernetes.io/x", "k8s.io/x", "K8s.io/x", "a.kubernetes.io/x", "example.com/x", "example.com/X", "Example.com/x", "example/x", "/x", "x/",
		"requests.example.com/x", "example.com/" + strings.Repeat("a", 63), "example.com/" + strings.Repeat("a", 64), strings.Repeat("a", 245) + ".b/x",
		"requests.cpu", "limits.memory", "pods", "configmaps", "storage", "requests.storage", "memroy", "cpu",
		"hugepages-", "hugepages-0", "hugepages-3Mi", "hugepages-1500m", "hugepages-2Mi", "requests.hugepages-2Mi",
		"kubernetes", "orphan", "foregroundDeletion",
	},
	"field": {
		"metadata.name", "metadata.labels", "metadata.labels['a']", "metadata.labels['A b']", "metadata.annotations['A/B']", "metadata.annotations['A b']",
		"metadata.annotations['']", "metadata.annotations", "metadata.uid['x']", "spec.host", "spec.nodeName['x']", "['x']", "x']",
		"status.phase", "spec.restartPolicy", "spec.schedulerName", "status.podIPs", "spec.nope", "v1", "v2", "limits.cpu", "requests.ephemeral-storage", "limits.hugepages-2Mi", "limits.nope",
	},
	"net": {
		"10.0.0.1", "010.0.0.1", "::1", "::ffff:1.2.3.4", "fe80::1%eth0", "256.1.1.1", "1.2.3", "dns.local", "dns.local.", "_srv._tcp", ".", "", "a..b",
		"host:80", "host", "host:80,other:81", "host:80,", "[::1]:80", "80", "http", "HTTP", "X-Header", "X Header",
		"https://a.blob.core.windows.net/b/c.vhd", "/subscriptions/x", "csi.example.com", "CSI.example.com", strings.Repeat("a", 64),
	},
	"iscsi": {
		"iqn.2001-04.com.example:disk", "iqn.2001-04.com.example", "xiqn.2001-04.com.example:disk", "iqn", "iq", "", "nope",
		"eui.02004567A425678D", "eui.0200", "naa.62004567BA64678D0123456789ABCDEF", "naa.1", strings.Repeat("a", 64),
	},
	"sysctl": {
		"net.core.somaxconn", "net/core/somaxconn", "net.ipv4.conf.eth0/1.rp_filter", "net/ipv4/conf/eth0.1/rp_filter", "kernel.shmmax", "kernel/shmmax", "kernel.shm_rmid_forced", "kernel.sem",
		"fs.mqueue.msg_max", "fs/mqueue/x", "fs.mqueue", "net.", "net", "net.*", "kernel.msgmax", "kernel.msg*", "Kernel.x", "kernel..x", "user.x", "-a.b", "a-.b", "", strings.Repeat("a", 253), strings.Repeat("a", 254),
	},
	"profile": {
		"runtime/default", "docker/default", "unconfined", "localhost/", "localhost/a", "localhost/../a", "localhost//a", "", " ", " a", "a.json",
		strings.Repeat("a", 4095), strings.Repeat("a", 4096),
	},
	"signer": {
		"example.com/x", "example.com", "example/x", "example.com/x/y", "Example.com/x", "example.com/X", "example.com/a.b", "example.com/-", "/x", "x/", "", "kubernetes.io/x", "a.kubernetes.io/x", "a.b.com/x.y.z",
		"a:b", ":a", ":", "a:", "example.com:x:b", "example.com:x:B", "example.com/x:b", "b",
		strings.Repeat("a", 64) + ".com/x", strings.Repeat("d.", 126) + "e/" + strings.Repeat("f", 253), strings.Repeat("d.", 127) + "e/x",
		strings.Repeat("d.", 120) + "e/" + strings.Repeat("f", 63) + "." + strings.Repeat("g", 253), strings.Repeat("d.", 120) + "e/" + strings.Repeat("f", 253) + "." + strings.Repeat("g", 253),
	},
	"windows": {
		"", "u", "a\\b", "a\\b\\c", "\\b", "a\\", ".a\\b", "a.b.c\\u", "a b\\u", "-a-a-a-a-a-a-a-a-\\u", "...", ". .", "u@d", "a\nb", "x|y", "a[b]", strings.Repeat("a", 104), strings.Repeat("a", 105),
		strings.Repeat("a", 255) + `\u`, strings.Repeat("a", 256) + `\u`, strings.Repeat("a.", 127) + `a\u`, strings.Repeat("a.", 127) + `aa\u`, strings.Repeat("a", 65536), strings.Repeat("a", 65537),
	},
	"word": {"CAP_SYS_ADMIN", "SYS_ADMIN", "noexec", "nodev", "nosuid", "PersistentVolumeClaim", "example.com", "RSA3072", "plain"},
}

// looks says which strange values look like those of a field, by its name.
var looks = map[string]string{
	"Path": "path", "SubPath": "path", "SubPathExpr": "path", "MountPath": "path", "DevicePath": "path", "Directory": "path",
	"CredentialBundlePath": "path", "KeyPath": "path", "CertificateChainPath": "path", "LocalhostProfile": "profile",
	"Key": "key", "TopologyKey": "key", "MatchLabelKeys": "key", "MismatchLabelKeys": "key", "Finalizers": "key", "ConditionType": "key", "ResourceName": "key",
	"FieldPath": "field", "Resource": "field", "APIVersion": "field",
	"IP": "net", "HostIP": "net", "Nameservers": "net", "Searches": "net", "Hostnames": "net", "Registry": "net", "DataDiskURI": "net", "Driver": "net", "Host": "net",
	"IQN": "iscsi", "InitiatorName": "iscsi", "TargetPortal": "iscsi", "SignerName": "signer",
	"RunAsUserName": "windows", "GMSACredentialSpec": "windows", "Add": "word", "BindMountOptions": "word", "Kind": "word", "APIGroup": "word", "KeyType": "word",
}

var looksOfAll = []string{"plain", "path", "key", "field", "net", "iscsi", "sysctl", "profile", "signer", "windows", "word"}

// words are values that fit fields by their names.
var words = map[string][]string{
	"Image":                {"nginx", "nginx:1.27", "nginx:latest", "registry.local:5000/app", "registry.local/app@sha256:" + strings.Repeat("a", 64), "a:latest@sha256:" + strings.Repeat("b", 64), "B AD", "nginx@sha512:" + strings.Repeat("a", 128)},
	"Reference":            {"nginx", "nginx:1", "nginx:latest", "", "UPPER/case"},
	"Name":                 goodNames,
	"GenerateName":         {"web-", "web", "Web"},
	"Namespace":            {"default", "kube-system"},
	"Finalizers":           {"example.com/x", "kubernetes", "orphan", "foregroundDeletion", "plain"},
	"APIVersion":           {"v1", "v1", "apps/v1", "v2"},
	"FieldPath":            {"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['app']", "metadata.annotations['a/b']", "spec.nodeName", "spec.host", "status.podIP", "status.podIPs", "metadata.labels", "status.phase"},
	"Resource":             {"limits.cpu", "limits.memory", "requests.cpu", "requests.memory", "limits.ephemeral-storage", "limits.hugepages-2Mi", "requests.hugepages-1Gi", "cpu"},
	"MountPath":            {"/a", "/b", "/c/d", "/e", "rel", "/a"},
	"DevicePath":           {"/dev/xvda", "/dev/xvdb", "/a"},
	"SubPath":              {"a", "a/b", "..a"},
	"SubPathExpr":          {"$(A)", "a/$(B)"},
	"Path":                 {"a", "b", "c/d", "/x", "/healthz", "tls.crt"},
	"IP":                   {"10.0.0.1", "::1", "127.0.0.1", "010.0.0.1"},
	"HostIP":               {"", "127.0.0.1", "10.0.0.1", "not-an-ip"},
	"Nameservers":          {"192.0.2.1", "192.0.2.2", "2001:db8::1", "dns.local"},
	"Searches":             {"a.test", "b.test.", ".", "_x.test"},
	"Hostnames":            {"a.test", "b", "c_d"},
	"Hostname":             {"web", "web-1"},
	"Key":                  {"app", "example.com/tier", "KEY", "a.b", "metadata.name"},
	"Values":               {"a", "b", "1", "A_b"},
	"Server":               {"nfs.test"},
	"IQN":                  {"iqn.2001-04.com.example:disk", "eui.02004567A425678D", "naa.62004567BA64678D0123456789ABCDEF"},
	"InitiatorName":        {"iqn.2001-04.com.example:disk", "eui.02004567A425678D", "bad"},
	"TargetPortal":         {"10.0.0.1:3260"},
	"Registry":             {"host:80", "host:80,other:81", "host"},
	"DataDiskURI":          {"https://a.blob.core.windows.net/b/c.vhd", "/subscriptions/x"},
	"Driver":               {"csi.example.com", "CSI.Example.com"},
	"SignerName":           {"example.com/signer", "kubernetes.io/kube-apiserver-client", "a.kubernetes.io/x"},
	"KeyType":              {"RSA3072", "ED25519", "ECDSAP256", "DSA"},
	"LocalhostProfile":     {"a.json", "profiles/b.json", "/abs", " x"},
	"RunAsUserName":        {"user", `domain\user`, `a.b.c\user`},
	"GMSACredentialSpec":   {"spec", ""},
	"Add":                  {"NET_ADMIN", "CAP_SYS_ADMIN"},
	"BindMountOptions":     {"noexec", "nodev", "nosuid"},
	"Kind":                 {"PersistentVolumeClaim", "VolumeSnapshot", "Pod"},
	"APIGroup":             {"snapshot.storage.k8s.io", ""},
	"ContainerName":        goodNames,
	"TargetContainerName":  goodNames,
	"TopologyKey":          {"kubernetes.io/hostname", "zone"},
	"MatchLabelKeys":       {"app", "x", "pod-template-hash"},
	"MismatchLabelKeys":    {"app", "tenant"},
	"Value":                {"", "", "1", "web"},
	"ConditionType":        {"example.com/ready", "Ready"},
	"ServiceAccountName":   {"default", "bot"},
	"HostnameOverride":     {"web", "web.example.com"},
	"ResourceName":         {"cpu", "memory"},
	"Prefix":               {"CFG_", "1X", "a-b"},
	"Repository":           {"https://git.test/x"},
	"Directory":            {"d", ".", "/d"},
	"CredentialBundlePath": {"bundle.pem", "a"},
	"KeyPath":              {"key.pem", "b"},
	"CertificateChainPath": {"chain.pem", "a"},
	"VolumeName":           goodNames,
	"Protocol":             {"TCP", "UDP"},
}

// profiles are those of the old annotations for seccomp and AppArmor.
var profiles = []string{
	"runtime/default", "docker/default", "unconfined", "localhost/a.json", "localhost/profiles/b.json", "localhost//abs", "localhost/ x", "", "nope",
}

var specialAnnotations = []string{
	"controller.kubernetes.io/pod-deletion-cost", "kubernetes.io/config.mirror", "scheduler.alpha.kubernetes.io/tolerations",
	"seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/web",
	"container.apparmor.security.beta.kubernetes.io/web", "container.apparmor.security.beta.kubernetes.io/none",
}

var annotationValues = append([]string{
	"1", "-1", "+1", "08", "-08", "0", "2147483648", "x", "{", `[{"key":"a","operator":"Exists","effect":"NoExecute"}]`, `[{"operator":"Equal","value":"a b"}]`, `[{"tolerationSeconds":5}]`,
}, profiles...)

// enums are the closed sets, by type, and some values that are in none.
var enums = map[string][]string{
	"RestartPolicy":                           {"Always", "OnFailure", "Never", "always", ""},
	"ContainerRestartPolicy":                  {"Always", "Always", "OnFailure", "Never", ""},
	"ContainerRestartRuleAction":              {"Restart", "RestartAllContainers", "Stop"},
	"ContainerRestartRuleOnExitCodesOperator": {"In", "NotIn", "Between"},
	"DNSPolicy":                               {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None", "Nope"},
	"PullPolicy":                              {"Always", "IfNotPresent", "Never", "Sometimes"},
	"TerminationMessagePolicy":                {"File", "FallbackToLogsOnError", "Nope"},
	"Protocol":                                {"TCP", "TCP", "UDP", "SCTP", "tcp", ""},
	"URIScheme":                               {"HTTP", "HTTPS", "http"},
	"HTTPProtocol":                            {"HTTP1", "HTTP2", "HTTP3"},
	"GRPCProbeMode":                           {"Plaintext", "TLS", "x"},
	"HostPathType":                            {"", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice", "Pipe"},
	"StorageMedium":                           {"", "Memory", "HugePages", "Nope"},
	"MountPropagationMode":                    {"None", "HostToContainer", "Bidirectional", "Nope"},
	"RecursiveReadOnlyMode":                   {"Disabled", "Enabled", "IfPossible", "Nope"},
	"ResourceResizeRestartPolicy":             {"NotRequired", "RestartContainer", "Nope"},
	"Signal":                                  {"SIGTERM", "SIGKILL", "SIGUSR1", "SIGRTMIN+1", "SIGRTMIN+15", "SIGRTMAX-14", "SIGRTMAX-15", "SIGNOPE"},
	"OSName":                                  {"linux", "linux", "windows", "plan9", ""},
	"SeccompProfileType":                      {"RuntimeDefault", "Unconfined", "Localhost", "Nope", ""},
	"AppArmorProfileType":                     {"RuntimeDefault", "Unconfined", "Localhost", "Nope", ""},
	"ProcMountType":                           {"Default", "Unmasked", "Nope"},
	"PodFSGroupChangePolicy":                  {"OnRootMismatch", "Always", "Nope"},
	"SupplementalGroupsPolicy":                {"Merge", "Strict", "Nope"},
	"PodSELinuxChangePolicy":                  {"Recursive", "MountOption", "Nope"},
	"PreemptionPolicy":                        {"PreemptLowerPriority", "Never", "Nope", ""},
	"TaintEffect":                             {"NoSchedule", "PreferNoSchedule", "NoExecute", "Nope", ""},
	"TolerationOperator":                      {"Exists", "Equal", "", "Lt", "Gt", "Nope"},
	"NodeSelectorOperator":                    {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Nope"},
	"LabelSelectorOperator":                   {"In", "NotIn", "Exists", "DoesNotExist", "Nope"},
	"UnsatisfiableConstraintAction":           {"DoNotSchedule", "ScheduleAnyway", "Nope"},
	"NodeInclusionPolicy":                     {"Honor", "Ignore", "Nope"},
	"PersistentVolumeAccessMode":              {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod", "Nope"},
	"PersistentVolumeMode":                    {"Filesystem", "Block", "Nope"},
	"AzureDataDiskCachingMode":                {"None", "ReadOnly", "ReadWrite", "Nope"},
	"AzureDataDiskKind":                       {"Shared", "Dedicated", "Managed", "Nope"},
	"Capability":                              {"NET_ADMIN", "CAP_SYS_ADMIN", "SYS_ADMIN"},
	"ResourceName":                            {"cpu", "memory", "nope"},
	"PodConditionType":                        {"example.com/ready", "Ready"},
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/sources"
)

const (
	defaultManifests = "/etc/kubernetes/manifests"
	defaultCheck     = 20 * time.Second
)

// settings are the flags of the commands that are an agent, or look as one. A
// flag that is given wins over the file of --config, that over the default.
type settings struct {
	file string // of --config

	manifests  []string
	extensions []string
	fileCheck  time.Duration
	urls       []string
	headers    []string
	urlCA      string
	urlCert    string
	urlKey     string
	httpCheck  time.Duration
	strict     bool
	cache      string // on or off

	nodeName      string
	nodeIP        string
	clusterDNS    []string
	clusterDomain string
	dockerHost    string
	execHandler   string
	network       string
	pauseImage    string
	resolvConf    string
	podLogsDir    string
	logSize       string
	logFiles      int
	podPIDs       int64

	policySettings
	nodeSettings
	cgroupSettings
	evictSettings
	eventSettings
	admitSettings
	shutdownSettings
	gcSettings
	apiSettings
}

// sourceFlags are about what is wanted.
func (s *settings) sourceFlags(f *pflag.FlagSet) {
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "pod-manifest-path" { // the kubelet's
			name = "manifests"
		}
		return pflag.NormalizedName(name)
	})
	f.StringArrayVar(&s.manifests, "manifests", []string{defaultManifests}, "`PATH` of a folder of manifests or of one; may be repeated; \"\" for none; --pod-manifest-path is the same")
	f.StringSliceVar(&s.extensions, "manifest-extensions", sources.DefaultExtensions(), "the `ENDINGS` of manifests in a folder")
	f.DurationVar(&s.fileCheck, "file-check-frequency", defaultCheck, "how often folders are read although nothing told of a change")
	f.StringArrayVar(&s.urls, "manifest-url", nil, "`URL` of manifests; may be repeated")
	f.StringArrayVar(&s.headers, "manifest-url-header", nil, "`HEADER` \"Name: value\" of requests to the URLs; may be repeated; never shown")
	f.StringVar(&s.urlCA, "manifest-url-ca", "", "`FILE` of the certificates that the URLs' servers are checked with (default the system's)")
	f.StringVar(&s.urlCert, "manifest-url-cert", "", "`FILE` of the client certificate for the URLs")
	f.StringVar(&s.urlKey, "manifest-url-key", "", "`FILE` of its key")
	f.DurationVar(&s.httpCheck, "http-check-frequency", defaultCheck, "how often the URLs are asked")
	f.StringVar(&s.cache, "source-cache", "on", "whether the last good manifests, Secrets too, are kept below the root dir: `on|off`; with off a start has nothing of what cannot be read then")
	f.BoolVar(&s.strict, "strict", false, "refuse unknown fields and duplicate keys instead of warning of them")
}

// engineFlags are about where it runs.
func (s *settings) engineFlags(f *pflag.FlagSet) {
	f.StringVar(&s.file, "config", "", "`FILE` with a KubeletConfiguration (v1beta1); flags win over it")
	f.StringVar(&s.nodeName, "hostname-override", "", "the node's `NAME`, the suffix of pods' names (default the machine's)")
	f.StringVar(&s.nodeIP, "node-ip", "", "the node's `ADDRESS` for pods and their status, or one of each family with a comma between (default its first global ones)")
	f.StringSliceVar(&s.clusterDNS, "cluster-dns", nil, "the `ADDRESSES` of the resolver of pods whose dnsPolicy asks for the cluster's (default none: they get the node's)")
	f.StringVar(&s.clusterDomain, "cluster-domain", "cluster.local", "the `DOMAIN` that the names of pods with a subdomain end in, and that is searched with --cluster-dns")
	f.StringVar(&s.dockerHost, "docker-host", "", "the engine's `ADDRESS` (default $DOCKER_HOST, else unix:///var/run/docker.sock)")
	f.StringVar(&s.execHandler, "docker-exec-handler", string(agent.NativeExec), "what runs commands in containers: `native|nsenter`, the engine's exec or the agent itself, in the container's namespaces; the engine's socket has to be a unix:// one for that")
	f.StringVar(&s.network, "docker-network", "bridge", "the engine's `NETWORK` of pods")
	f.StringVar(&s.pauseImage, "pod-infra-container-image", "", "`IMAGE` of the container that holds a pod's namespaces (default built in, never pulled)")
	f.StringVar(&s.resolvConf, "resolv-conf", "", "`FILE` of the resolvers of pods (default the machine's)")
	f.Int64Var(&s.podPIDs, "pod-max-pids", -1, "how many processes and threads a pod may have; -1 is no limit")
	f.StringVar(&s.podLogsDir, "pod-logs-dir", "", "`FOLDER` of log links by pod (default /var/log/pods; with another root dir logs/pods in it)")
	f.StringVar(&s.logSize, "container-log-max-size", "10Mi", "the `SIZE` at which a container's log is rotated")
	f.IntVar(&s.logFiles, "container-log-max-files", 5, "how many log files are kept of a container")
	s.policySettings.flags(f)
	s.nodeSettings.flags(f)
	s.cgroupSettings.flags(f)
	s.evictSettings.flags(f)
	s.eventSettings.flags(f)
	s.admitSettings.flags(f)
	s.shutdownSettings.flags(f)
	s.gcSettings.flags(f)
	s.apiSettings.flags(f)
}

// config is the agent's configuration. Every problem is reported, not only the
// first.
func (s *settings) config(flags *pflag.FlagSet, l location, version string, log *slog.Logger) (agent.Config, error) {
	if s.file != "" {
		if err := applyKubeletFile(s.file, flags, log); err != nil {
			return agent.Config{}, err
		}
	}
	var errs []error
	check := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	header, err := parseHeaders(s.headers)
	check("manifest-url-header", err)
	check("manifest-url", checkURLs(s.urls))
	check("manifest-extensions", checkExtensions(s.extensions))
	check("file-check-frequency", notNegative(s.fileCheck))
	check("http-check-frequency", notNegative(s.httpCheck))
	s.fileCheck, s.httpCheck = cmp.Or(s.fileCheck, defaultCheck), cmp.Or(s.httpCheck, defaultCheck)
	if !slices.Contains([]string{"", "on", "off"}, s.cache) {
		check("source-cache", fmt.Errorf("%q: want on or off", s.cache))
	}
	if (s.urlCert == "") != (s.urlKey == "") {
		errs = append(errs, errors.New("--manifest-url-cert and --manifest-url-key: each needs the other"))
	}
	nodeIPs, err := parseNodeIPs(s.nodeIP)
	check("node-ip", err)
	check("docker-exec-handler", agent.CheckExecHandler(agent.ExecHandler(s.execHandler), s.dockerHost))
	check("cluster-dns", checkAddresses(s.clusterDNS))
	check("cluster-domain", checkDomain(s.clusterDomain))
	size, err := parseSize(s.logSize)
	check("container-log-max-size", err)
	if s.logFiles < 1 {
		check("container-log-max-files", fmt.Errorf("%d: want 1 or more", s.logFiles))
	}
	if s.podPIDs == 0 || s.podPIDs < -1 {
		check("pod-max-pids", fmt.Errorf("%d: want 1 or more, or -1 for no limit", s.podPIDs))
	}
	logs, err := absolute(s.podLogsDir)
	check("pod-logs-dir", err)
	resolvConf, err := absolute(s.resolvConf)
	check("resolv-conf", err)
	policy := s.policy(check)
	admission := s.admission(check)
	shutdown := s.shutdown(check)
	node := s.node(l, s.perQOS, check)
	cgroups := s.cgroups(l, check)
	eviction := s.eviction(check)
	events := s.events(check)
	collected := s.gc(check)
	api := s.api(l, flags.Changed, check)
	api.Effective = effective(flags)
	return agent.Config{
		RootDir: l.rootDir, Socket: l.socket,
		NodeName: s.nodeName, NodeIPs: nodeIPs,
		ResolvConf: resolvConf, ClusterDNS: agent.ClusterDNS{Servers: s.clusterDNS, Domain: s.clusterDomain},
		Manifests:  slices.DeleteFunc(slices.Clone(s.manifests), func(p string) bool { return p == "" }),
		Extensions: s.extensions, FileCheck: s.fileCheck,
		URLs: s.urls, Header: header, URLCA: s.urlCA, URLCert: s.urlCert, URLKey: s.urlKey, HTTPCheck: s.httpCheck,
		Strict: s.strict, Policy: policy, Node: node, Cgroups: cgroups, Events: events, Admission: admission, Shutdown: shutdown, NoSourceCache: s.cache == "off",
		GC: collected, API: api,
		Docker: agent.DockerConfig{
			Host: s.dockerHost, RootDir: l.rootDir, PauseImage: s.pauseImage, Network: s.network,
			ExecHandler: agent.ExecHandler(s.execHandler),
			LogMaxSize:  size, LogMaxFiles: s.logFiles,
		},
		Logs:     l.logs(logs),
		Eviction: eviction,
		PodPIDs:  max(s.podPIDs, 0),
		Version:  version,
	}, errors.Join(errs...)
}

// given names those of the source and engine flags that the user gave.
func given(flags *pflag.FlagSet) (names []string) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	s := &settings{}
	s.sourceFlags(own)
	s.engineFlags(own)
	flags.Visit(func(f *pflag.Flag) {
		if own.Lookup(f.Name) != nil {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// parseNodeIPs reads one address, or one of each family.
func parseNodeIPs(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	list := strings.Split(text, ",")
	if err := checkAddresses(list); err != nil {
		return nil, err
	}
	if len(list) > 2 || len(list) == 2 && netip.MustParseAddr(list[0]).Is4() == netip.MustParseAddr(list[1]).Is4() {
		return nil, fmt.Errorf("%q: want one address, or one of each family", text)
	}
	return list, nil
}

func checkAddresses(list []string) error {
	for _, text := range list {
		if _, err := netip.ParseAddr(text); err != nil {
			return fmt.Errorf("%q: want an address", text)
		}
	}
	return nil
}

func checkDomain(name string) error {
	if wrong := utilvalidation.IsDNS1123Subdomain(name); name != "" && len(wrong) > 0 {
		return fmt.Errorf("%q: %s", name, wrong[0])
	}
	return nil
}

// notNegative takes 0, which means the default, as in a kubelet's configuration.
func notNegative(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: want 0 or more", d)
	}
	return nil
}

// parseHeaders reads "Name: value" lines. No error repeats one: they are secrets.
func parseHeaders(lines []string) (http.Header, error) {
	var errs []error
	header := http.Header{}
	for i, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !isToken(name) || strings.ContainsFunc(value, unprintable) {
			errs = append(errs, fmt.Errorf("header %d: want \"Name: value\"", i+1))
			continue
		}
		header.Add(name, value)
	}
	if len(header) == 0 {
		header = nil
	}
	return header, errors.Join(errs...)
}

// isToken reports whether s can be the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// checkURLs does not repeat a URL either: it may have a password in it.
func checkURLs(urls []string) error {
	var errs []error
	for i, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("URL %d: want http://… or https://…", i+1))
		}
	}
	return errors.Join(errs...)
}

func checkExtensions(extensions []string) error {
	for _, e := range extensions {
		if e != "" && !strings.HasPrefix(e, ".") || strings.ContainsRune(e, '/') {
			return fmt.Errorf("%q: want a dot and letters, such as .yaml", e)
		}
	}
	return nil
}

func parseSize(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("%q: want a quantity such as 10Mi", text)
	}
	if q.Sign() <= 0 {
		return 0, fmt.Errorf("%s: want more than 0", text)
	}
	return q.Value(), nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

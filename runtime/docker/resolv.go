package docker

import (
	"github.com/docker/docker/api/types/container"

	"github.com/podkeeper/podkeeper/runtime"
)

// tellDNS makes what the contract says the whole truth; nil leaves it to the
// engine. Where a list is empty the engine would add that of its own file: "." is
// its word for no search list, and an option that resolvers have anyway stands
// for none. It has no word for no servers.
func tellDNS(host *container.HostConfig, dns *runtime.DNS) {
	if dns == nil {
		return
	}
	host.DNS, host.DNSSearch, host.DNSOptions = dns.Servers, dns.Searches, dns.Options
	if len(host.DNSSearch) == 0 {
		host.DNSSearch = []string{"."}
	}
	if len(host.DNSOptions) == 0 {
		host.DNSOptions = []string{"ndots:1"}
	}
}

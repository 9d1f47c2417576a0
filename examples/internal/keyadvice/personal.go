package keyadvice

import (
	"fmt"
	"net/netip"
)

// mayBelong finds parts that may be visitors' addresses. keys.CheckPersonal accepts addresses, because they also name
// machines. So only many addresses in many networks count, and the advice is only an info.
func (a *analysis) mayBelong(f *field) {
	if len(f.values) < fewestPersonal {
		return
	}
	addresses := 0
	networks := map[netip.Prefix]bool{}
	for _, v := range f.values {
		if network, ok := publicNetwork(v); ok {
			addresses++
			networks[network] = true
		}
	}
	if float64(addresses) < inOrder*float64(len(f.values)) || 2*len(networks) < min(addresses, manyNetworks) {
		return
	}
	a.add(Advice{
		Cause: causePersonalData, Severity: info, Field: f.name,
		Found: fmt.Sprintf("Values of key field %s look like IPv4 addresses from %d networks.", f.name, len(networks)),
		Why: "Row keys are service data: they appear in logs, errors and Key Visualizer, and outlive what they name. " +
			"The address of a person is personal data; that of a machine is not.",
		Remedy: "For people's addresses, store an opaque id, or a keyed hash from keys.Hasher. CheckKeys: keys.CheckPersonal accepts addresses.",
	})
}

// carrier is the range of addresses that a carrier assigns within its own network.
var carrier = netip.MustParsePrefix("100.64.0.0/10")

// publicNetwork returns the 16-bit network of a public IPv4 address: the machines of one owner are in few networks.
func publicNetwork(s string) (netip.Prefix, bool) {
	if len(s) > len("255.255.255.255") {
		return netip.Prefix{}, false
	}
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() || !a.IsGlobalUnicast() || a.IsPrivate() || carrier.Contains(a) {
		return netip.Prefix{}, false
	}
	network, err := a.Prefix(16)
	return network, err == nil
}

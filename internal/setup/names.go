package setup

// OfOthers are the tools that other packages of a distribution install by the same name: infiniband-diags, opensm and ibutils. Their links
// and manual pages are in directories of their own, for those who put them into their paths.
var OfOthers = []string{
	"ibaddr", "ibcacheedit", "ibclearerrors", "ibdiagnet", "ibdiagpath", "iblinkinfo", "ibnetdiscover", "ibping", "ibportstate",
	"ibqueryerrors", "ibroute", "ibstat", "ibsysstat", "ibtracert", "opensm", "osmtest", "perfquery", "saquery", "sminfo", "smpdump",
	"smpquery",
}

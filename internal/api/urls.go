package api

// Where requests about these go; what a name in them identifies follows behind a slash.
const (
	ContainersURL      = "/containers"
	EndpointsURL       = "/ipoib/endpoints"
	FunctionsURL       = "/functions"
	OverlayURL         = "/overlay"
	TeamLinksURL       = TeamsURL + "/links"
	TeamsURL           = "/teams"
	VirtualPortsURL    = "/virtual-ports"
	VirtualSwitchesURL = "/vswitches"
	VLANsURL           = "/vlans"
)

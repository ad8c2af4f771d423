package cmdlets

import (
	"fmt"
	"strings"
)

// view is how a real PowerShell shows objects of a type, if nothing is said: as a table of these properties, or a list.
type view struct {
	kind  string
	list  bool
	names []string
}

func views() []view {
	table := func(kind, names string) view { return view{kind, false, strings.Fields(names)} }
	list := func(kind, names string) view { return view{kind, true, strings.Fields(names)} }
	return []view{
		table("MSFT_NetAdapter", "Name InterfaceDescription ifIndex Status MacAddress LinkSpeed"),
		table("MSFT_NetAdapterAdvancedPropertySettingData", "Name DisplayName DisplayValue RegistryKeyword RegistryValue"),
		list("MSFT_NetAdapterQosSettingData", "Name Enabled OperationalTrafficClasses OperationalFlowControl OperationalClassifications"),
		table("MSFT_NetAdapterStatisticsSettingData", "Name ReceivedBytes ReceivedPackets SentBytes SentPackets"),
		table("MSFT_NetAdapterHardwareInfoSettingData", "Name Segment Bus Device Function Slot NumaNode PcieLinkSpeed PcieLinkWidth"),
		table("MSFT_NetAdapterVmqQueueSettingData", "Name QueueID MacAddress VlanID Processor VmFriendlyName"),
		table("MSFT_NetAdapterVPort", "Name ID MacAddress VID FID State QPairs"),
		table("MSFT_NetQosFlowControlSettingData", "Priority Enabled PolicySet IfIndex IfAlias"),
		table("MSFT_NetQosDcbxSettingData", "Willing PolicySet IfIndex IfAlias"),
		table("MSFT_NetQosTrafficClassSettingData", "Name Algorithm BandwidthPercentage Priority PolicySet IfIndex IfAlias"),
		table("MSFT_NetIPAddress", "IPAddress PrefixLength InterfaceAlias InterfaceIndex AddressFamily"),
		table("MSFT_NetIPInterface", "ifIndex InterfaceAlias NlMtu Dhcp ConnectionState SystemInterface"),
		table("MSFT_NetRoute", "ifIndex DestinationPrefix NextHop RouteMetric InterfaceAlias"),
		table("MSFT_SmbClientNetworkInterface", "FriendlyName InterfaceIndex RssCapable RdmaCapable Speed IpAddresses"),
		table("MSFT_SmbServerNetworkInterface", "FriendlyName InterfaceIndex RssCapable RdmaCapable Speed IpAddresses"),
		list("VMHost", "Name IovSupport IovSupportReasons"),
		table("VMSwitch", "Name SwitchType NetAdapterInterfaceDescription Ports"),
		table("VMSwitchExtension", "Name SwitchName Enabled"),
		table("VMNetworkAdapter", "Name IsManagementOs VMName SwitchName MacAddress Function"),
		table("VirtualMachine", "Name State NetworkAdapters"),
		list("MLNX_DriverCoreSettingData", "Caption Description ElementName RoceMode"),
		table("MLNX_PCIDevice", "Name SystemName BusNumber DeviceNumber FunctionNumber Ports"),
		table("MLNX_SoftwareIdentity", "Name VersionString"),
	}
}

// moduleFormats returns the views in the form of about_Format.ps1xml.
func moduleFormats() string {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- How results are shown. Written by softvpi ps. -->\n" +
		"<Configuration>\n  <ViewDefinitions>\n")
	for _, v := range views() {
		fmt.Fprintf(&b, "    <View>\n      <Name>SoftVPI.%s</Name>\n      <ViewSelectedBy><TypeName>SoftVPI.%s</TypeName></ViewSelectedBy>\n", v.kind, v.kind)
		if v.list {
			b.WriteString("      <ListControl><ListEntries><ListEntry><ListItems>\n")
			for _, n := range v.names {
				fmt.Fprintf(&b, "        <ListItem><PropertyName>%s</PropertyName></ListItem>\n", n)
			}
			b.WriteString("      </ListItems></ListEntry></ListEntries></ListControl>\n    </View>\n")
			continue
		}
		b.WriteString("      <TableControl>\n        <AutoSize/>\n        <TableHeaders>\n")
		for _, n := range v.names {
			fmt.Fprintf(&b, "          <TableColumnHeader><Label>%s</Label></TableColumnHeader>\n", n)
		}
		b.WriteString("        </TableHeaders>\n        <TableRowEntries><TableRowEntry><TableColumnItems>\n")
		for _, n := range v.names {
			fmt.Fprintf(&b, "          <TableColumnItem><PropertyName>%s</PropertyName></TableColumnItem>\n", n)
		}
		b.WriteString("        </TableColumnItems></TableRowEntry></TableRowEntries>\n      </TableControl>\n    </View>\n")
	}
	b.WriteString("  </ViewDefinitions>\n</Configuration>\n")
	return b.String()
}

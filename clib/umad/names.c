/* Names for numbers in MADs, as programs print them. */
#include <arpa/inet.h>

#include "umad.h"

struct name {
	uint16_t number;
	const char *name;
};

static const struct name methods[] = {
	{ 0x01, "Get" }, { 0x02, "Set" }, { 0x03, "Send" }, { 0x05, "Trap" }, { 0x06, "Report" }, { 0x07, "TrapRepress" },
	{ 0x81, "GetResp" }, { 0x86, "ReportResp" }, { 0, 0 },
};

static const struct name sa_methods[] = {
	{ 0x12, "GetTable" }, { 0x13, "GetTraceTable" }, { 0x14, "GetMulti" }, { 0x15, "Delete" },
	{ 0x92, "GetTableResp" }, { 0x94, "GetMultiResp" }, { 0x95, "DeleteResp" }, { 0, 0 },
};

static const struct name attributes[] = {
	{ 0x01, "Class Port Info" }, { 0x02, "Notice" }, { 0x03, "Inform Info" }, { 0, 0 },
};

static const struct name subnet[] = {
	{ 0x10, "NodeDescription" }, { 0x11, "NodeInfo" }, { 0x12, "SwitchInfo" }, { 0x14, "GUIDInfo" }, { 0x15, "PortInfo" },
	{ 0x16, "P_KeyTable" }, { 0x17, "SLtoVLMappingTable" }, { 0x18, "VLArbitrationTable" }, { 0x19, "LinearForwardingTable" },
	{ 0x1a, "RandomForwardingTable" }, { 0x1b, "MulticastForwardingTable" }, { 0x1c, "LinkSpeedWidthPairsTable" },
	{ 0x1d, "VendorSpecificMadsTable" }, { 0x1e, "HierarchyInfo" }, { 0x20, "SMInfo" }, { 0x30, "VendorDiag" },
	{ 0x31, "LedInfo" }, { 0x32, "CableInfo" }, { 0x33, "PortInfoExtended" }, { 0, 0 },
};

static const struct name records[] = {
	{ 0x11, "NodeRecord" }, { 0x12, "PortInfoRecord" }, { 0x13, "SLtoVLMappingTableRecord" }, { 0x14, "SwitchInfoRecord" },
	{ 0x15, "LinearForwardingTableRecord" }, { 0x16, "RandomForwardingTableRecord" }, { 0x17, "MulticastForwardingTableRecord" },
	{ 0x18, "SMInfoRecord" }, { 0x19, "LinkSpeedWidthPairsTableRecord" }, { 0x20, "LinkRecord" }, { 0x30, "GuidInfoRecord" },
	{ 0x31, "ServiceRecord" }, { 0x33, "P_KeyTableRecord" }, { 0x35, "PathRecord" }, { 0x36, "VLArbitrationTableRecord" },
	{ 0x38, "MCMemberRecord" }, { 0x39, "TraceRecord" }, { 0x3a, "MultiPathRecord" }, { 0x3b, "ServiceAssociationRecord" },
	{ 0x3c, "HierarchyInfoRecord" }, { 0x3d, "CableInfoRecord" }, { 0x3e, "PortInfoExtendedRecord" },
	{ 0xf3, "InformInfoRecord" }, { 0, 0 },
};

static const struct name connection[] = {
	{ 0x10, "ConnectRequest" }, { 0x11, "MsgRcptAck" }, { 0x12, "ConnectReject" }, { 0x13, "ConnectReply" }, { 0x14, "ReadyToUse" },
	{ 0x15, "DisconnectRequest" }, { 0x16, "DisconnectReply" }, { 0x17, "ServiceIDResReq" }, { 0x18, "ServiceIDResReqResp" },
	{ 0x19, "LoadAlternatePath" }, { 0x1a, "AlternatePathResponse" }, { 0x1b, "SuggestAlternatePath" },
	{ 0x1c, "SuggestPathResponse" }, { 0, 0 },
};

static const struct name sa_statuses[] = {
	{ 1, "No Resources" }, { 2, "Request Invalid" }, { 3, "No Records" }, { 4, "Too Many Records" }, { 5, "Invalid GID" },
	{ 6, "Insufficient Components" }, { 7, "Request Denied" }, { 8, "Priority Suggested" }, { 0, 0 },
};

static const char *find(const struct name *list, unsigned number, const char *other)
{
	for (; list->name; list++)
		if (list->number == number)
			return list->name;
	return other;
}

EXPORT const char *umad_class_str(uint8_t c)
{
	switch (c) {
	case 0x01:
	case 0x81:
		return "Subn";
	case 0x03:
		return "SubnAdm";
	case 0x04:
		return "Perf";
	case 0x05:
		return "BM";
	case 0x06:
		return "DevMgt";
	case 0x07:
		return "ComMgt";
	case 0x08:
		return "SNMP";
	case 0x10:
		return "DevAdm";
	case 0x11:
		return "BootMgt";
	case 0x12:
		return "BIS";
	case 0x21:
		return "CongestionManagment"; /* misspelt in the original too */
	}
	if ((c >= 0x09 && c <= 0x0f) || (c >= 0x30 && c <= 0x4f))
		return "Vendor";
	return c >= 0x13 && c <= 0x2f ? "Application" : "<unknown>";
}

EXPORT const char *umad_method_str(uint8_t c, uint8_t method)
{
	return find(methods, method, c == 0x03 ? find(sa_methods, method, "<unknown") : "<unknown");
}

EXPORT const char *umad_attribute_str(uint8_t c, uint16_t attr_id)
{
	const struct name *list = c == 0x01 || c == 0x81 ? subnet : c == 0x03 ? records : c == 0x07 ? connection : attributes;

	return find(attributes, ntohs(attr_id), find(list, ntohs(attr_id), "<unknown>"));
}

EXPORT const char *umad_common_mad_status_str(uint16_t status)
{
	unsigned s = ntohs(status);

	if (s & 1)
		return "Busy";
	if (s & 2)
		return "Redirection required";
	switch (s >> 2 & 7) {
	case 1:
		return "Bad Version";
	case 2:
		return "Method not supported";
	case 3:
		return "Method/Attribute combo not supported";
	case 7:
		return "Invalid attribute/modifier field";
	}
	return "Success";
}

EXPORT const char *umad_sa_mad_status_str(uint16_t status)
{
	unsigned s = ntohs(status) >> 8;

	return s ? find(sa_statuses, s, "Undefined Error") : "Success";
}

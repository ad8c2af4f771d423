package vlanconfig

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// vlanNumbers reads the ID and the priority of a VLAN interface. What they may be the driver says.
func vlanNumbers(a *arguments, id, priority string) (numbers [2]int, err error) {
	for i, x := range []struct{ field, value, allowed string }{
		{"VLAN ID", a.values[id], "1 to 4094"}, {"priority", a.values[priority], "0 to 7"},
	} {
		if numbers[i], err = strconv.Atoi(x.value); err != nil {
			return numbers, api.Wrong(x.field, strconv.Quote(x.value), x.allowed)
		}
	}
	return numbers, nil
}

// addVLAN makes a VLAN interface of a team or an adapter (WinOF 5.50, 4.1.6.5).
func (s *session) addVLAN(ctx context.Context, a *arguments) error {
	n, err := vlanNumbers(a, "VlanId", "Priority")
	if err != nil {
		return err
	}
	v, err := s.client.CreateVLAN(ctx, api.VLANRequest{Owner: a.values["TeamName"], Name: a.values["VlanName"], ID: n[0], Priority: n[1],
		Address: a.values["address"], TAP: a.values["tap"]})
	if err != nil {
		return err
	}
	return s.print(v, "Adding vlan to adapter with Guid ="+v.OwnerGUID, "Vlan Name="+v.Name, fmt.Sprint("Vlan Id=", v.ID),
		fmt.Sprint("Vlan Priority=", v.Priority), "Miniport created with Guid = "+strings.Trim(v.GUID, "{}"))
}

// removeVLAN removes one (4.1.6.11).
func (s *session) removeVLAN(ctx context.Context, a *arguments) error {
	v, err := s.client.RemoveVLAN(ctx, a.values["TeamName"], a.values["VlanName"])
	if err != nil {
		return err
	}
	return s.print(v, "removing vlan to adapter with physical Guid ="+v.OwnerGUID, "Vlan Guid ="+v.GUID,
		"pMuxPhysicalAdapter->RemoveMiniport succeeded")
}

// queryVLAN shows one (4.1.6.10).
func (s *session) queryVLAN(ctx context.Context, a *arguments) error {
	all, err := s.client.VLANs(ctx)
	if err != nil {
		return err
	}
	owner, names := a.values["TeamName"], []string{}
	for _, v := range all {
		switch {
		case !strings.EqualFold(v.Owner, owner) && !strings.EqualFold(strings.Trim(v.OwnerGUID, "{}"), strings.Trim(owner, "{}")):
		case strings.EqualFold(v.Name, a.values["VlanName"]):
			return s.print(v, "Vlan Guid       : "+v.GUID, "Vlan Name       : "+v.Name, fmt.Sprint("Vlan Id         : ", v.ID),
				fmt.Sprint("Vlan Priority   : ", v.Priority))
		default:
			names = append(names, strconv.Quote(v.Name))
		}
	}
	allowed := strconv.Quote(owner) + " has none; vlan_config addvlan makes one"
	if len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	return api.Wrong("VLAN interface", strconv.Quote(a.values["VlanName"]), allowed)
}

// modifyVLAN gives one another name, ID and priority (4.1.6.7).
func (s *session) modifyVLAN(ctx context.Context, a *arguments) error {
	n, err := vlanNumbers(a, "NewVlanId", "NewPriority")
	if err != nil {
		return err
	}
	v, err := s.client.ModifyVLAN(ctx, a.values["TeamName"], a.values["VlanName"],
		api.VLANRequest{Name: a.values["NewVlanName"], ID: n[0], Priority: n[1]})
	if err != nil {
		return err
	}
	return s.print(v, "New Attributes applied")
}

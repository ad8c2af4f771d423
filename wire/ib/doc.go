// Package ib holds the packet formats of the InfiniBand transport as RoCE and
// InfiniBand links carry them: the base and extended transport headers, GRH and
// LRH, the two CRCs, and the small number systems that go with them (PSNs, QP
// numbers, P_Keys, credit and timer codes).
//
// The headers are views: a BTH is a byte slice with accessors for its fields. Creating one costs nothing
// and none of its methods allocate. The methods do not check lengths, so a view must be at least as long
// as its Len constant (BTHLen, RETHLen and so on); ParsePacket checks that for a whole packet of unknown
// origin. All fields are big-endian, like everything in the InfiniBand Architecture Specification (IBA)
// except the ICRC.
package ib

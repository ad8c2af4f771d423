// Package sriov says how many virtual functions SR-IOV's configuration grants to each port of a device, and why there are fewer
// than asked for. It is pure: what the registry, mlxconfig and the wires say comes in as a Device.
//
// The rules are those of the manuals: WinOF 5.50, 4.5.3.4.2 (Enabling SR-IOV in Mellanox WinOF Package) and 4.6.9.1 (SR-IOV
// Registry Keys) for devices of the ConnectX-3 class, whose ports share one pool; WinOF-2 24.4, Single Root I/O Virtualization, for
// the ConnectX-4 class and later, where every port has its own.
package sriov

// Package partition defines who may communicate with whom in a subnet: partitions as in opensm(8),
// PARTITION CONFIGURATION, the P_Keys that ports get from them, and what the P_Keys of two ports have in
// common (IBA 10.9). It is pure.
package partition

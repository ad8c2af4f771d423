// Package partition is who may talk to whom in a subnet: partitions as opensm(8), PARTITION CONFIGURATION, has them, the P_Keys that ports get of
// them, and what the P_Keys of two ports have in common (IBA 10.9). It is pure.
package partition

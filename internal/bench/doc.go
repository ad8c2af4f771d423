// Package bench measures RDMA and TCP on the same path in the same run: the processes of the tools against
// a plain TCP sender (and iperf3 and sockperf if they are installed), over loopback, across a pair of
// virtual Ethernet devices, and attached to one driver. Runs are interleaved and medians taken, so that a
// noisy machine disturbs all equally.
package bench

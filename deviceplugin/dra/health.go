package main

import (
	"time"

	"google.golang.org/grpc"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
)

var _ health.DRAResourceHealthServer = (*plugin)(nil)

// healthInterval is after how long kubelet is told what it knows, since it takes devices that it has long heard nothing of for unknown.
const healthInterval = 10 * time.Second

// NodeWatchResources implements health.DRAResourceHealthServer: kubelet writes the health of devices into the status of pods that have
// them.
func (p *plugin) NodeWatchResources(_ *health.NodeWatchResourcesRequest,
	to grpc.ServerStreamingServer[health.NodeWatchResourcesResponse]) error {
	t := time.NewTicker(healthInterval)
	defer t.Stop()
	for {
		p.mu.Lock()
		out, changed := healthOf(p.o.node, p.devices, time.Now()), p.changed
		p.mu.Unlock()
		if err := to.Send(out); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-t.C:
		case <-to.Context().Done():
			return nil
		}
	}
}

func healthOf(pool string, list []device, now time.Time) *health.NodeWatchResourcesResponse {
	out := &health.NodeWatchResourcesResponse{}
	for i := range list {
		d := &list[i]
		h := &health.DeviceHealth{Device: &health.DeviceIdentifier{PoolName: pool, DeviceName: d.name}, Health: health.HealthStatus_HEALTHY,
			LastUpdatedTime: now.Unix(), Message: d.why}
		if d.why != "" {
			h.Health = health.HealthStatus_UNHEALTHY
		}
		out.Devices = append(out.Devices, h)
	}
	return out
}

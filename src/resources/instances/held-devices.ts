import { z } from 'zod';

/** As many as spec.gpu.count can ask for. */
const MOST_DEVICES = 64;

/** Longest UUID of a device that is kept: those of NVIDIA's GPUs have 40 characters, and those of MIG devices too. */
export const LONGEST_DEVICE_UUID = 64;

/** Lengths are those of resource.k8s.io/v1, DeviceRequestAllocationResult. */
export const heldDevicesSchema = z
  .array(
    z
      .object({
        driver: z.string().max(63).describe('Driver of Dynamic Resource Allocation that has the device.'),
        pool: z.string().max(253).describe('Pool of the driver, often the name of the node.'),
        device: z.string().max(63).describe('Name of the device in its pool.'),
        uuid: z.string().max(LONGEST_DEVICE_UUID).optional().describe('Its attribute uuid, where the driver tells it.'),
      })
      .describe('A device.'),
  )
  .max(MOST_DEVICES)
  .meta({ 'x-kubernetes-list-type': 'atomic' });

export type HeldDevice = z.infer<typeof heldDevicesSchema>[number];

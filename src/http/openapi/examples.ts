/** A body that works unchanged: a test sends each of them. */
export interface Example {
  summary: string;
  value: Record<string, unknown>;
}

export const EXAMPLES = {
  createInstance: {
    cheapest: { summary: 'The cheapest free offer with the default image', value: {} },
    full: {
      summary: 'Interruptible, with image, disk and name',
      value: {
        type: 1,
        name: 'training run 7',
        template_image: 'pytorch/pytorch:2.7.0-cuda12.6-cudnn9-runtime',
        runtype: 'ssh',
        disk_gb: 40,
        install_monitoring: false,
        stats: '{"team":"vision"}',
      },
    },
    vast: {
      summary: 'As Vast.ai clients send it',
      value: { runtype: 'jupyter_direc ssh_direc ssh_proxy', disk_gb: 16, template_hash_id: null, template_image: '' },
    },
  },
  updateInstance: {
    rename: { summary: 'New name and label', value: { name: 'training run 8', label: 'vision' } },
    clear: { summary: 'Clear the label', value: { label: null } },
    stop: { summary: 'Stop and keep the disk', value: { state: 'stopped' } },
  },
  createLink: {
    jupyter: { summary: 'Jupyter, on an instance with runtype jupyter', value: {} },
    port: { summary: 'A port that the instance declares', value: { port: 7860 } },
  },
  createSshKey: {
    ed25519: {
      summary: 'The content of ~/.ssh/id_ed25519.pub',
      value: {
        name: 'laptop',
        public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@laptop',
      },
    },
  },
  createRegistry: {
    ghcr: {
      summary: 'A token of GitHub that may read packages',
      value: { name: 'ghcr', server: 'ghcr.io', username: 'octocat', password: 'ghp_example' },
    },
  },
} as const satisfies Record<string, Record<string, Example>>;

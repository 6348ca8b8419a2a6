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
    everything: {
      summary: 'A program with its environment and port, that ends by itself',
      value: {
        gpu: { count: 1, memory_mb: 1024 },
        template_image: 'vllm/vllm-openai:v0.9.0',
        args: ['--model', 'Qwen/Qwen3-8B'],
        env: { HF_HOME: '/workspace/hf' },
        ports: [{ container_port: 8000, name: 'http' }],
        registry: 'my-registry',
        max_duration: '12h',
        on_expiry: 'delete',
        on_no_capacity: 'queue',
      },
    },
    vast: {
      summary: 'As Vast.ai clients send it',
      value: { runtype: 'jupyter_direc ssh_direc ssh_proxy', disk_gb: 16, template_hash_id: null, template_image: '' },
    },
  },
  searchOffers: {
    all: { summary: 'All offers, for the default image', value: {} },
    image: {
      summary: 'Free places with at least 40 GB per GPU, for an image',
      value: {
        image: 'pytorch/pytorch:2.7.0-cuda12.6-cudnn9-runtime',
        gpu_count: 1,
        min_gpu_memory_mb: 40000,
        min_available: 1,
        max_price_per_hour: '2.50',
      },
    },
  },
  updateInstance: {
    rename: { summary: 'New name and label', value: { name: 'training run 8', label: 'vision' } },
    clear: { summary: 'Clear the label', value: { label: null } },
    extend: { summary: 'Run for longer', value: { max_duration: '24h', idle_timeout: null } },
    stop: { summary: 'Stop and keep the disk', value: { state: 'stopped' } },
  },
  createLink: {
    jupyter: { summary: 'Jupyter, on an instance with runtype jupyter', value: {} },
    port: { summary: 'A port that the instance declares', value: { port: 7860 } },
  },
  createTemplate: {
    program: {
      summary: 'A model server',
      value: {
        name: 'vLLM',
        image: 'vllm/vllm-openai:v0.9.0',
        args: ['--model', 'Qwen/Qwen3-8B'],
        env: { HF_HOME: '/workspace/hf' },
        ports: [{ container_port: 8000, name: 'http' }],
        disk_gb: 80,
      },
    },
    machine: {
      summary: 'A machine to log in to',
      value: { name: 'dev', image: 'debian:12', runtype: 'ssh', on_start: 'apt-get update && apt-get install -y git' },
    },
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
  createWebhook: {
    all: { summary: 'All events', value: { url: 'https://hooks.example.com/berth' } },
    some: {
      summary: 'When instances become ready, and when money runs out',
      value: {
        url: 'https://hooks.example.com/berth',
        events: ['instance.ready', 'budget.near', 'budget.spent'],
        name: 'billing',
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

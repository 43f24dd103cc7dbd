

def all_reduce(x, mesh_axes, reducer):
    return lax.psum(x, mesh_axes) if reducer == "sum" else lax.pmax(x, mesh_axes)


def reduce_scatter(x, mesh_axes, axis):
    return lax.psum_scatter(x, mesh_axes, scatter_dimension=axis, tiled=True)


def all_gather(x, mesh_axes, axis):
    return lax.all_gather(x, mesh_axes, axis=axis, tiled=True)


def all_to_all(x, mesh_axes, axis, split_axis):
    return lax.all_to_all(x, mesh_axes, split_axis, axis, tiled=True)


def flat(x, size):
    """The elements of a tensor, and zeros behind them."""
    return jnp.pad(x.reshape(-1), (0, size - x.size))


def compute(functions, kinds, *tensors):
    """What the ranks compute between two collectives: rank r the function functions[kinds[r]]."""
    if len(functions) == 1:
        return functions[0](*tensors)
    return lax.switch(jnp.asarray(kinds)[lax.axis_index(MESH_AXES)], functions, *tensors)


def run(inputs):
    """The outputs of the plan, of inputs in the order of INPUTS."""
    devices = np.asarray(jax.devices()[:RANKS]).reshape(MESH)
    mesh = jax.sharding.Mesh(devices, MESH_AXES)
    spec = jax.sharding.PartitionSpec
    weights = {element: np.load(os.path.join(FOLDER, file)) for element, file in WEIGHTS.items()}
    specs = ({element: spec(MESH_AXES) for element in weights}, spec())
    local = lambda w, x: program({element: rows[0] for element, rows in w.items()}, x)
    if hasattr(jax, "shard_map"):
        mapped = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=spec(), check_vma=False)
    else:
        from jax.experimental.shard_map import shard_map
        mapped = shard_map(local, mesh=mesh, in_specs=specs, out_specs=spec(), check_rep=False)
    return [np.asarray(output) for output in jax.jit(mapped)(weights, tuple(inputs))]


def files_of(names, folder):
    """Where taso-run saves tensors of these names."""
    used, files = set(), []
    for name in names:
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
        safe = "_" + safe if not safe or safe[0] == "." else safe
        unique, count = safe, 2
        while unique in used:
            unique, count = f"{safe}_{count}", count + 1
        used.add(unique)
        files.append(os.path.join(folder, unique + ".npy"))
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", help="folder of inputs, as taso-run --save-inputs writes them (default: random)")
    parser.add_argument("--save-outputs", help="folder for the outputs")
    parser.add_argument("--expect", help="folder of outputs, as taso-run --save-outputs writes them, to compare with")
    parser.add_argument("--rtol", type=float, default=1e-4, help="allowed difference relative to the largest element")
    options = parser.parse_args()
    if options.inputs:
        inputs = [np.load(file) for file in files_of([name for name, _, _ in INPUTS], options.inputs)]
    else:
        generator = np.random.default_rng(0)
        inputs = [generator.uniform(-1, 1, shape).astype(element) if element.startswith("float") else
                  generator.integers(0, 2, shape).astype(element) for _, shape, element in INPUTS]
    outputs = run(inputs)
    if options.save_outputs:
        os.makedirs(options.save_outputs, exist_ok=True)
        for file, value in zip(files_of(OUTPUTS, options.save_outputs), outputs):
            np.save(file, value)
    if not options.expect:
        for name, value in zip(OUTPUTS, outputs):
            print(f"{name}: {value.dtype} {list(value.shape)}")
        return
    wrong = False
    for name, file, value in zip(OUTPUTS, files_of(OUTPUTS, options.expect), outputs):
        expected = np.load(file)
        if expected.shape != value.shape:
            sys.exit(f"{name}: shape {value.shape}, expected {expected.shape}")
        scale = float(np.max(np.abs(expected))) if expected.size else 0.0
        largest = float(np.max(np.abs(expected.astype(np.float64) - value))) if expected.size else 0.0
        difference = largest / scale if scale > 0 else largest
        print(f"{name}: largest difference {difference:.1e}")
        wrong = wrong or not difference <= options.rtol  # NaN is wrong, too.
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

# Read by the tests here, with `mpirun` set: `ranks` is then how they start ranks, before -np. Exits 77 where none start.
if [ -z "$mpirun" ] || [ ! -x "$mpirun" ]; then
  echo "skipped: built without MPI, or no mpirun"
  exit 77
fi
ranks=("$mpirun")
if "$mpirun" --version | grep -q 'Open MPI\|OpenRTE'; then
  # Bound to a core each, the first ranks of tests that run at the same time would share one.
  ranks+=(--oversubscribe --bind-to none)
  if [ "$(id -u)" = 0 ]; then ranks+=(--allow-run-as-root); fi
fi
if ! "${ranks[@]}" -np 2 true > /dev/null 2>&1; then
  echo "skipped: mpirun starts nothing here"
  exit 77
fi

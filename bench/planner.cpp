#include <sys/resource.h>
#include <fmt/format.h>
#include <chrono>
#include <cstring>
#include <cstdlib>
#include "partition/pase_problem.h"
#include "partition/solve_exact.h"
using namespace taso;
int main(int argc,char**argv){
  std::string g=argv[1]; int p=atoi(argv[2]); 
  ExactOptions o; o.dominance = argc<=3 || atoi(argv[3])!=0; if(argc>4) o.order=(OrderRule)atoi(argv[4]);
  PaseGraph graph = g=="a"?pase_alexnet():g=="i"?pase_inception_v3():g=="r"?pase_rnnlm():g=="t"?pase_transformer():pase_resnet101();
  auto t0=std::chrono::steady_clock::now();
  PaseProblem pr=pase_problem(graph,p);
  auto t1=std::chrono::steady_clock::now();
  auto s=solve_exact(pr.problem,o);
  auto t2=std::chrono::steady_clock::now();
  size_t K=0; for(auto&c:pr.configurations) K=std::max(K,c.size());
  struct rusage u; getrusage(RUSAGE_SELF,&u);
  fmt::print("{} V={} E={} p={} K={} M={} comb={:.6g} cost={:.3f} lb={:.3f} dp={:.3f} ways {}->{} table {} build {:.3f}s solve {:.3f}s mem {}M\n",graph.name,graph.layers.size(),pr.edges,p,K,s.order.width,s.order.largest_combinations,s.cost,s.lower_bound,pr.problem.cost(pase_data_parallel(graph,pr)),s.ways,s.kept_ways,s.largest_table,std::chrono::duration<double>(t1-t0).count(),std::chrono::duration<double>(t2-t1).count(),u.ru_maxrss/1024);
}

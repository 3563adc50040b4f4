import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.DoubleValue;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import ciir.umass.edu.learning.DenseDataPoint;
import ciir.umass.edu.learning.Ranker;
import ciir.umass.edu.learning.RankerFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoubleDocValuesField;
import org.apache.lucene.expressions.Expression;
import org.apache.lucene.expressions.SimpleBindings;
import org.apache.lucene.expressions.js.JavascriptCompiler;
import org.apache.lucene.expressions.js.VariableContext;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.NoMergePolicy;
import org.apache.lucene.search.DoubleValues;
import org.apache.lucene.search.DoubleValuesSource;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.store.ByteBuffersDirectory;

/**
 * Scores documents with the libraries that read models themselves: Lucene expressions, RankLib and Vespa's ranking expressions.
 *
 * <p>Arguments: a table of documents, whose first line has the names of the features, and a folder of exported models. The
 * scores by the model in CASE.ENGINE are written to CASE.ENGINE.scores, one line for each document.
 */
public final class Scores {
  private final String[] names;
  private final List<double[]> documents = new ArrayList<>();

  private Scores(Path table) throws Exception {
    List<String> lines = Files.readAllLines(table);
    names = lines.get(0).split("\t");
    for (String line : lines.subList(1, lines.size())) {
      documents.add(Arrays.stream(line.split("\t")).mapToDouble(Double::parseDouble).toArray());
    }
  }

  public static void main(String[] arguments) throws Exception {
    Scores scores = new Scores(Path.of(arguments[0]));
    List<Path> models;
    try (Stream<Path> files = Files.list(Path.of(arguments[1]))) {
      models = files.sorted().collect(Collectors.toList());
    }
    for (Path model : models) {
      String name = model.getFileName().toString();
      double[] found = null;
      try {
        if (name.endsWith(".lucene")) {
          found = scores.lucene(Files.readString(model));
        } else if (name.endsWith(".ranklib")) {
          found = scores.rankLib(model.toString());
        } else if (name.endsWith(".vespa")) {
          found = scores.vespa(Files.readString(model));
        }
      } catch (Exception error) {
        Files.writeString(Path.of(model + ".error"), error.toString());
      }
      if (found != null) {
        String text = Arrays.stream(found).mapToObj(Double::toString).collect(Collectors.joining("\n"));
        Files.writeString(Path.of(model + ".scores"), text);
      }
    }
  }

  private double[] lucene(String text) throws Exception {
    Expression expression = JavascriptCompiler.compile(text);
    SimpleBindings bindings = new SimpleBindings();
    for (String variable : expression.variables) {
      // A name that is no identifier is written doc['name'].
      VariableContext[] parts = VariableContext.parse(variable);
      String field = variable.endsWith("]") ? parts[1].text : variable;
      bindings.add(variable, DoubleValuesSource.fromDoubleField(field));
    }
    double[] found = new double[documents.size()];
    try (ByteBuffersDirectory directory = new ByteBuffersDirectory()) {
      IndexWriterConfig settings = new IndexWriterConfig().setMergePolicy(NoMergePolicy.INSTANCE);
      try (IndexWriter writer = new IndexWriter(directory, settings)) {
        for (double[] values : documents) {
          Document document = new Document();
          for (int column = 0; column < names.length; column++) {
            document.add(new DoubleDocValuesField(names[column], values[column]));
          }
          writer.addDocument(document);
        }
      }
      try (DirectoryReader reader = DirectoryReader.open(directory)) {
        DoubleValuesSource source = expression.getDoubleValuesSource(bindings).rewrite(new IndexSearcher(reader));
        for (LeafReaderContext leaf : reader.leaves()) {
          DoubleValues values = source.getValues(leaf, null);
          for (int document = 0; document < leaf.reader().maxDoc(); document++) {
            values.advanceExact(document);
            found[leaf.docBase + document] = values.doubleValue();
          }
        }
      }
    }
    return found;
  }

  private double[] rankLib(String path) {
    Ranker ranker = new RankerFactory().loadRankerFromFile(path);
    return documents.stream().mapToDouble(values -> ranker.eval(dataPoint(values))).toArray();
  }

  private static DenseDataPoint dataPoint(double[] values) {
    StringBuilder line = new StringBuilder("0 qid:1");
    for (int column = 0; column < values.length; column++) {
      line.append(' ').append(column + 1).append(':').append(values[column]);
    }
    return new DenseDataPoint(line.toString());
  }

  private double[] vespa(String text) throws Exception {
    RankingExpression expression = new RankingExpression(text);
    double[] found = new double[documents.size()];
    for (int row = 0; row < found.length; row++) {
      MapContext context = new MapContext();
      for (int column = 0; column < names.length; column++) {
        context.put("attribute(f" + (column + 1) + ")", new DoubleValue(documents.get(row)[column]));
      }
      found[row] = expression.evaluate(context).asDouble();
    }
    return found;
  }
}
